"""The tracer as a service of a running server."""

import json
from pathlib import Path

import numpy as np
import pytest

import naiad_tracing
from naiad import Server
from naiad.errors import InvalidArgumentError, NotFoundError
from naiad.types import Request, Trace
from naiad_kit.tracing import Tracing
from naiad_tensors.tensors import Tensor
from naiad_testing.backends import FakeBackend


def server_of(models: Path, backend: FakeBackend, *trace_config: str) -> Server:
    options = {"trace-config": trace_config, "model-control-mode": "explicit", "load-model": ("*",)}
    return Server(model_repository=[models], plugins=[naiad_tracing, backend], options=options)


def request(model: str, request_id: str, trace: Trace) -> Request:
    return Request(model, {"INPUT": Tensor.of("INPUT", np.array([1], dtype=np.float32))}, id=request_id, trace=trace)


async def test_a_server_writes_a_trace_with_the_traces_of_what_it_caused(tmp_path: Path) -> None:
    backend = FakeBackend()
    for name in ("outer", "inner"):
        backend.write(tmp_path / "models", name)
    settings = ("rate=1", "level=TIMESTAMPS", f"triton,file={tmp_path / 't.json'}")

    async with server_of(tmp_path / "models", backend, *settings) as server:
        trace = server.service(Tracing).sample("outer", 0, "o")
        assert trace is not None
        step = trace.child("inner", 0, "i")
        await server.infer(request("inner", "i", step))
        step.end()
        await server.infer(request("outer", "o", trace))
        trace.end()

    written = json.loads((tmp_path / "t.json").read_text())
    assert [each for each in written if "model_name" in each] == [
        {"id": 1, "model_name": "outer", "model_version": 1, "request_id": "o"},
        {"id": 2, "model_name": "inner", "model_version": 1, "request_id": "i", "parent_id": 1},
    ]
    assert [each["id"] for each in written] == [1] * 9 + [2] * 9


async def test_settings_are_those_of_models_that_serve(tmp_path: Path) -> None:
    backend = FakeBackend()
    for name in ("ready", "broken"):
        backend.write(tmp_path / "models", name)

    async with server_of(tmp_path / "models", backend) as server:
        await server.unload("broken")
        tracing = server.service(Tracing)

        assert tracing.settings("ready")["trace_level"] == ("OFF",)
        with pytest.raises(NotFoundError):
            tracing.settings("missing")
        with pytest.raises(InvalidArgumentError, match="Request for unknown model : broken"):
            tracing.settings("broken")


async def test_a_server_does_not_start_with_a_trace_file_that_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "models").mkdir()
    server = server_of(tmp_path / "models", FakeBackend(), f"triton,file={tmp_path / 'missing' / 't.json'}")

    with pytest.raises(InvalidArgumentError, match="cannot be written"):
        await server.start()


def test_a_server_is_not_made_with_a_trace_mode_that_does_not_exist(tmp_path: Path) -> None:
    with pytest.raises(InvalidArgumentError, match="the modes are"):
        server_of(tmp_path, FakeBackend(), "mode=other")
