"""The tracer: sampling, settings and modes together, as frontends use it."""

import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from naiad.errors import InvalidArgumentError, NotFoundError, UnsupportedError
from naiad.types import Trace
from naiad_kit.explanation import Explanation
from naiad_tracing.options import TraceOptions
from naiad_tracing.selection import Selection
from naiad_tracing.tracer import Tracer

from .collector import collecting

CALLER = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"


def check_model(name: str) -> None:
    """The only models are m and n."""
    if name not in ("m", "n"):
        raise NotFoundError(f"unknown model '{name}'")


@contextmanager
def tracing(path: Path, *levels: str, rate: int = 1, count: int = -1, log_frequency: int = 0) -> Iterator[Tracer]:
    """Tracing into `t.json` of that folder, written when the block is left."""
    tracer = Tracer(TraceOptions(selection=Selection(levels, rate, count, log_frequency), file=str(path / "t.json")))
    tracer.open(check_model)
    try:
        yield tracer
    finally:
        tracer.close(10)


@contextmanager
def exporting(*levels: str, rate: int = 1) -> Iterator[Tracer]:
    """Tracing in the mode opentelemetry to a collector that is not read."""
    with collecting() as collector:
        tracer = Tracer(TraceOptions("opentelemetry", Selection(levels, rate), url=collector.url))
        tracer.open(check_model)
        yield tracer
        tracer.close(10)


def send(tracer: Tracer, model: str = "m", requests: int = 1, **headers: str) -> list[bool]:
    """Which of so many requests are traced; each trace ends at once."""
    traced = []
    for _ in range(requests):
        trace = tracer.sample(model, 1, "", **headers)
        traced.append(trace is not None)
        if trace is not None:
            trace.end()
    return traced


def models_in(path: Path) -> list[str]:
    return [each["model_name"] for each in json.loads(path.read_text()) if "model_name" in each]


def test_nothing_is_active_while_the_level_is_off(tmp_path: Path) -> None:
    with tracing(tmp_path) as tracer:
        active = tracer.active
        traced = send(tracer)

    assert (active, traced) == (False, [False])


def test_nothing_is_active_without_a_file() -> None:
    tracer = Tracer(TraceOptions(selection=Selection(("TIMESTAMPS",))))

    tracer.open(check_model)

    assert (tracer.active, send(tracer)) == (False, [False])


def test_a_level_that_is_switched_on_makes_it_active(tmp_path: Path) -> None:
    with tracing(tmp_path) as tracer:
        tracer.update({"trace_level": ["TIMESTAMPS"]}, "m")
        active = tracer.active
        traced = [send(tracer, model) for model in ("m", "n")]
        tracer.update({"trace_level": None}, "m")
        active_again = tracer.active

    assert (active, traced, active_again) == (True, [[True], [False]], False)
    assert models_in(tmp_path / "t.json") == ["m"]


def test_one_request_is_followed_at_a_time_whatever_is_sampled(tmp_path: Path) -> None:
    followed = []

    def begin(model: str, version: int, inner: Trace | None) -> Trace:
        followed.append((model, version, inner is not None))
        return Explanation(model, version, inner)

    with tracing(tmp_path) as tracer:
        tracer.follow_next(begin)
        active = tracer.active
        traced = send(tracer, requests=2)
        active_again = tracer.active
        tracer.follow_next(begin)
        tracer.follow_next(None)
        none = send(tracer)
        tracer.update({"trace_level": ["TIMESTAMPS"]})
        tracer.follow_next(begin)
        both = send(tracer)

    assert (active, traced, active_again, none, both) == (True, [True, False], False, [False], [True])
    assert followed == [("m", 1, False), ("m", 1, True)]
    assert models_in(tmp_path / "t.json") == ["m"]


def test_a_count_that_is_used_up_makes_it_inactive(tmp_path: Path) -> None:
    with tracing(tmp_path, "TIMESTAMPS", count=2) as tracer:
        traced = send(tracer, requests=3)
        message = tracer.settings()["trace_count"]
        active = tracer.active

    assert (traced, message, active) == ([True, True, False], "0", False)


def test_a_rate_of_zero_makes_files_inactive(tmp_path: Path) -> None:
    with tracing(tmp_path, "TIMESTAMPS", rate=0) as tracer:
        assert not tracer.active


def test_a_caller_that_samples_is_traced_whatever_the_rate_where_there_are_spans() -> None:
    with exporting("TIMESTAMPS", rate=0) as tracer:
        active = tracer.active
        traced = send(tracer), send(tracer, traceparent=CALLER), send(tracer, traceparent=CALLER[:-1] + "0")

    assert (active, traced) == (True, ([False], [True], [False]))


def test_the_headers_of_a_caller_mean_nothing_to_files(tmp_path: Path) -> None:
    with tracing(tmp_path, "TIMESTAMPS", rate=2) as tracer:
        assert send(tracer, requests=2, traceparent=CALLER) == [False, True]


def test_tensors_alone_make_no_spans() -> None:
    with exporting("TENSORS") as tracer:
        assert (tracer.active, send(tracer)) == (False, [False])


def test_settings_record_all_that_counts(tmp_path: Path) -> None:
    with tracing(tmp_path, "TIMESTAMPS", rate=3) as tracer:
        tracer.update({"trace_level": ["TENSORS"], "log_frequency": ["5"]}, "m")
        of_all, of_model = tracer.settings("n"), tracer.settings("m")

    expected = {
        "trace_level": ("TIMESTAMPS",),
        "trace_rate": "3",
        "trace_count": "-1",
        "log_frequency": "0",
        "trace_mode": "triton",
        "trace_file": str(tmp_path / "t.json"),
    }
    assert of_all == expected
    assert of_model == {**expected, "trace_level": ("TENSORS",), "log_frequency": "5"}


def test_settings_of_spans_are_those_of_their_mode() -> None:
    with exporting("TIMESTAMPS") as tracer:
        message = tracer.update({"log_frequency": ["5"]})

    assert set(message) == {
        "trace_level",
        "trace_rate",
        "trace_count",
        "trace_mode",
        "url",
        "bsp_max_queue_size",
        "bsp_schedule_delay",
        "bsp_max_export_batch_size",
    }


@pytest.mark.parametrize(
    ("changes", "model", "kind"),
    [
        ({"trace_rate": ["5"], "trace_count": ["x"]}, "", InvalidArgumentError),
        ({"trace_rate": ["5"], "trace_file": ["x"]}, "m", UnsupportedError),
        ({"trace_rate": ["5"]}, "other", NotFoundError),
    ],
)
def test_nothing_changes_when_anything_is_refused(
    tmp_path: Path, changes: dict[str, Any], model: str, kind: type[Exception]
) -> None:
    with tracing(tmp_path, "TIMESTAMPS") as tracer:
        with pytest.raises(kind):
            tracer.update(changes, model)

        assert {tracer.settings(name)["trace_rate"] for name in ("", "m", "n")} == {"1"}


def test_settings_of_an_unknown_model_are_not_reported(tmp_path: Path) -> None:
    with tracing(tmp_path) as tracer, pytest.raises(NotFoundError):
        tracer.settings("other")


def test_a_new_frequency_begins_a_new_file(tmp_path: Path) -> None:
    with tracing(tmp_path, "TIMESTAMPS", log_frequency=2) as tracer:
        send(tracer, "m", 3)
        tracer.update({"log_frequency": ["1"]})
        send(tracer, "n", 2)

    files = {path.name: models_in(path) for path in tmp_path.iterdir()}
    assert files == {"t.json": [], "t.json.0": ["m", "m"], "t.json.1": ["m"], "t.json.2": ["n"], "t.json.3": ["n"]}


def test_nothing_is_traced_after_the_end(tmp_path: Path) -> None:
    with tracing(tmp_path, "TIMESTAMPS") as tracer:
        late = tracer.sample("m", 1, "")
    assert late is not None

    late.end()

    assert (tracer.active, send(tracer)) == (False, [False])


def test_a_missing_package_is_named_with_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "naiad_tracing.span_recording", raising=False)
    monkeypatch.setitem(sys.modules, "opentelemetry.exporter.otlp.proto.http.trace_exporter", None)

    with pytest.raises(InvalidArgumentError, match=r"pip install 'naiad-tracing\[opentelemetry\]'"):
        Tracer(TraceOptions("opentelemetry")).open(check_model)
