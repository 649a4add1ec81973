"""A server without a tracer: no request is traced, and the trace settings say what to install."""

from pathlib import Path

import pytest

from naiad.errors import UnsupportedError
from naiad.hookspecs import hookimpl
from naiad_kit.tracing import tracing_of
from naiad_testing.backends import FakeBackend
from naiad_testing.in_loop import request, running
from naiad_testing.tracing import FakeTracing


class TracingPlugin(FakeTracing):
    """A fake tracer that is its own plugin."""

    @hookimpl
    def naiad_services(self, settings):
        return [self]


async def test_without_a_tracer_nothing_is_traced_and_the_settings_say_what_to_install(tmp_path: Path) -> None:
    backend = FakeBackend()
    backend.write(tmp_path, "m")

    async with running(tmp_path, backend) as server:
        tracing = tracing_of(server)
        sampled = tracing.sample("m", 1, "7") if tracing.active else None
        await server.infer(request("m", 1, trace=sampled))
        with pytest.raises(UnsupportedError, match="pip install 'naiad-tracing'"):
            tracing.settings()
        with pytest.raises(UnsupportedError, match="pip install 'naiad-tracing'"):
            tracing.update({"trace_rate": ["1"]})

        assert (sampled, "trace" in server.metadata().extensions) == (None, False)


async def test_the_trace_extension_is_there_where_a_tracer_is(tmp_path: Path) -> None:
    tracer = TracingPlugin()

    async with running(tmp_path, tracer) as server:
        assert tracing_of(server) is tracer
        assert "trace" in server.metadata().extensions
