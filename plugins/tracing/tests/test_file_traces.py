"""Traces that end in a file."""

import json
from pathlib import Path
from typing import Any

import numpy as np

from naiad_tensors.tensors import Tensor
from naiad_tracing.file_recording import FileRecording, FileTrace
from naiad_tracing.recording import Subject
from naiad_tracing.sampling import Sampler
from naiad_tracing.selection import Selection


class Recorded:
    """A recording into a file of the test; leaving the block closes it and reads the file."""

    def __init__(self, path: Path, *levels: str) -> None:
        self.path = path / "t.json"
        self.recording = FileRecording(str(self.path))
        self.sampler = Sampler(Selection(levels))
        self.objects: list[dict[str, Any]] = []

    def begin(self, model: str = "m") -> FileTrace:
        return self.recording.begin(Subject(model, 0, "r"), self.sampler, None)

    def __enter__(self) -> "Recorded":
        return self

    def __exit__(self, *error: object) -> None:
        assert self.recording.close(10)
        self.objects = json.loads(self.path.read_text())

    def activities(self, number: int) -> list[str]:
        """The events and activities of a trace."""
        mine = [each for each in self.objects if each["id"] == number and "model_name" not in each]
        return [each["activity"] if "activity" in each else each["timestamps"][0]["name"] for each in mine]

    def identities(self) -> list[dict[str, Any]]:
        return [each for each in self.objects if "model_name" in each]


def test_a_trace_tells_the_version_that_answered(tmp_path: Path) -> None:
    with Recorded(tmp_path, "TIMESTAMPS") as recorded:
        trace = recorded.begin()
        trace.version = 3
        trace.end()

    assert recorded.identities() == [{"id": 1, "model_name": "m", "model_version": 3, "request_id": "r"}]


def test_only_what_the_levels_name_is_kept(tmp_path: Path) -> None:
    tensor = Tensor.of("x", np.zeros(1, np.float32))
    with Recorded(tmp_path, "TIMESTAMPS") as recorded:
        timed = recorded.begin()
        recorded.sampler.selection = Selection(("TENSORS",))
        watched = recorded.begin()
        for trace in (timed, watched):
            trace.record("REQUEST_START")
            trace.tensors("TENSOR_QUEUE_INPUT", [tensor])
            trace.end()

    assert (recorded.activities(1), recorded.activities(2)) == (["REQUEST_START"], ["TENSOR_QUEUE_INPUT"])
    assert (timed.wants_timestamps, timed.wants_tensors) == (True, False)


def test_a_time_may_be_reported_later(tmp_path: Path) -> None:
    with Recorded(tmp_path, "TIMESTAMPS") as recorded:
        trace = recorded.begin()
        trace.record("NOW")
        trace.record("BEFORE", 5)
        trace.end()

    assert recorded.activities(1) == ["BEFORE", "NOW"]
    assert recorded.objects[1]["timestamps"][0]["ns"] == 5


def test_nothing_is_reported_after_the_end(tmp_path: Path) -> None:
    with Recorded(tmp_path, "TIMESTAMPS", "TENSORS") as recorded:
        trace = recorded.begin()
        trace.end()
        trace.record("REQUEST_END")
        trace.tensors("TENSOR_QUEUE_INPUT", [Tensor.of("x", np.zeros(1, np.float32))])
        trace.end()

    assert len(recorded.objects) == 1


def test_traces_that_one_caused_stand_beside_it(tmp_path: Path) -> None:
    with Recorded(tmp_path, "TIMESTAMPS") as recorded:
        trace = recorded.begin()
        other = recorded.begin()
        step = trace.child("step", 1, "s")
        step.record("REQUEST_START")
        step.end()
        other.end()
        trace.end()

    assert recorded.identities() == [
        {"id": 2, "model_name": "m", "model_version": 0, "request_id": "r"},
        {"id": 1, "model_name": "m", "model_version": 0, "request_id": "r"},
        {"id": 3, "model_name": "step", "model_version": 1, "request_id": "s", "parent_id": 1},
    ]
    assert recorded.activities(3) == ["REQUEST_START"]


def test_a_trace_that_outlives_its_parent_is_not_lost(tmp_path: Path) -> None:
    with Recorded(tmp_path, "TIMESTAMPS") as recorded:
        trace = recorded.begin()
        step = trace.child("step")
        below = step.child("below")
        trace.end()
        step.end()
        below.end()

    assert [each.get("parent_id") for each in recorded.identities()] == [None, 1, 2]


def test_a_trace_that_outlives_its_parent_is_in_the_same_numbered_file(tmp_path: Path) -> None:
    with Recorded(tmp_path, "TIMESTAMPS") as recorded:
        recorded.sampler = Sampler(Selection(("TIMESTAMPS",), log_frequency=1))
        trace = recorded.begin()
        step = trace.child("step")
        trace.end()
        recorded.begin("next").end()
        step.end()

    files = [json.loads((tmp_path / f"t.json.{number}").read_text()) for number in (0, 1)]
    assert [[each["model_name"] for each in file if "model_name" in each] for file in files] == [
        ["m", "step"],
        ["next"],
    ]
    assert not (tmp_path / "t.json.2").exists()


def test_a_file_gives_models_no_context(tmp_path: Path) -> None:
    with Recorded(tmp_path, "TIMESTAMPS") as recorded:
        trace = recorded.begin()
        with trace.current():
            context = trace.context()

    assert context == ""
