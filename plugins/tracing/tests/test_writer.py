"""The thread that writes traces."""

import json
import logging
import threading
from pathlib import Path

import pytest

from naiad.errors import InvalidArgumentError
from naiad_tracing import writer as module
from naiad_tracing.array_file import ArrayFile
from naiad_tracing.trace_records import Timestamp, TraceRecord
from naiad_tracing.writer import Family, Stream, TraceWriter


def record(number: int) -> TraceRecord:
    return TraceRecord(number, 0, "m", 1, "", (Timestamp(number, "REQUEST_START"),))


def ids(path: Path) -> list[int]:
    """The traces of a file, in the order of their identities."""
    return [each["id"] for each in json.loads(path.read_text()) if "model_name" in each]


def test_all_traces_go_into_one_file_without_a_frequency(tmp_path: Path) -> None:
    writer = TraceWriter(str(tmp_path / "t.json"))
    writer.open()
    stream = Stream(0)

    for number in (1, 2, 3):
        writer.put(stream, [record(number)], Family())
    ended = writer.close(10)

    assert (ended, ids(tmp_path / "t.json")) == (True, [1, 2, 3])


def test_a_frequency_is_how_many_traces_a_numbered_file_takes(tmp_path: Path) -> None:
    writer = TraceWriter(str(tmp_path / "t.json"))
    writer.open()
    stream = Stream(2)

    writer.put(stream, [record(1), record(2)], Family())  # one trace and one that it caused
    for number in (3, 4):
        writer.put(stream, [record(number)], Family())
    writer.close(10)

    assert ids(tmp_path / "t.json.0") == [1, 2, 3]
    assert ids(tmp_path / "t.json.1") == [4]
    assert ids(tmp_path / "t.json") == []


def test_streams_never_share_a_numbered_file(tmp_path: Path) -> None:
    writer = TraceWriter(str(tmp_path / "t.json"))
    writer.open()
    one, other = Stream(2), Stream(3)

    for number, stream in enumerate((one, other, other, one, other), start=1):
        writer.put(stream, [record(number)], Family())
    writer.close(10)

    assert (ids(tmp_path / "t.json.0"), ids(tmp_path / "t.json.1")) == ([1, 4], [2, 3, 5])


def test_a_file_that_cannot_be_written_is_refused_at_once(tmp_path: Path) -> None:
    with pytest.raises(InvalidArgumentError, match=r"none/t.json cannot be written: No such file.*--trace-config"):
        TraceWriter(str(tmp_path / "none" / "t.json")).open()


class FailingFile(ArrayFile):
    """A file on a disk that fills up and is cleared; the writer's thread waits for the test between two appends."""

    full = False

    def append(self, elements):
        if self.full and elements:
            raise OSError(28, "No space left on device")
        super().append(elements)


def test_a_full_disk_loses_traces_and_says_so_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(module, "ArrayFile", FailingFile)
    writer = TraceWriter(str(tmp_path / "t.json"))
    writer.open()

    for full, number in ((True, 1), (True, 2), (False, 3)):
        FailingFile.full = full
        writer._write_all([module._Parcel(Stream(0), [record(number)], 0, Family())])
    writer.close(10)

    recorded = [record.getMessage() for record in caplog.records if record.levelno == logging.ERROR]
    assert ids(tmp_path / "t.json") == [3]
    assert len(recorded) == 1
    assert "are lost until they can: No space left on device" in recorded[0]


def test_what_waits_to_be_written_is_bounded(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    writer = TraceWriter(str(tmp_path / "t.json"), most_bytes=1000)
    before_it_runs = Stream(0)

    for number in (1, 2, 3, 4):
        writer.put(before_it_runs, [record(number)], Family())
    writer.open()
    writer.close(10)

    assert ids(tmp_path / "t.json") == [1, 2]
    assert "2 traces are lost" in caplog.text


def test_a_single_trace_may_be_larger_than_the_bound(tmp_path: Path) -> None:
    writer = TraceWriter(str(tmp_path / "t.json"), most_bytes=1)
    writer.open()

    writer.put(Stream(0), [record(1)], Family())
    writer.close(10)

    assert ids(tmp_path / "t.json") == [1]


def test_a_disk_that_hangs_is_not_waited_for_longer_than_asked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    hanging = threading.Event()

    class HangingFile(ArrayFile):
        def append(self, elements):
            if elements:
                hanging.wait()

    monkeypatch.setattr(module, "ArrayFile", HangingFile)
    writer = TraceWriter(str(tmp_path / "t.json"))
    writer.open()
    writer.put(Stream(0), [record(1)], Family())

    ended = writer.close(0.01)

    hanging.set()
    assert (ended, writer.close(10)) == (False, True)
