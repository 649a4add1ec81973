"""The thread that writes the log: no thread waits for a stream, and what is lost is counted."""

import errno
import logging
import os
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from naiad_cli.log_writer import LogWriter, QueuedHandler


class Stream:
    """A stream that is stuck while `free` is not set, and raises `error` where there is one."""

    def __init__(self, error: Exception | None = None) -> None:
        self.texts: list[str] = []
        self.entered = threading.Event()
        self.free = threading.Event()
        self.free.set()
        self._error = error

    def write(self, text: str) -> None:
        self.entered.set()
        self.free.wait(10)
        if self._error is not None:
            raise self._error
        self.texts.append(text)

    def flush(self) -> None:
        pass

    def isatty(self) -> bool:
        return False

    @property
    def lines(self) -> list[str]:
        return "".join(self.texts).splitlines()


@pytest.fixture
def writer() -> Iterator[LogWriter]:
    writer = LogWriter(most_characters=100)
    writer.start()
    yield writer
    writer.close()


def stuck(writer: LogWriter) -> Stream:
    """A stream that the writer's thread is stuck in."""
    stream = Stream()
    stream.free.clear()
    writer.put(stream, "first\n")
    stream.entered.wait(10)
    return stream


def test_lines_of_several_streams_are_written_in_their_order(writer: LogWriter) -> None:
    order: list[str] = []
    first, second = Stream(), Stream()
    first.texts = second.texts = order

    for number in range(6):
        writer.put(first if number % 3 else second, f"{number}\n")

    assert writer.flush(10)
    assert "".join(order).split() == ["0", "1", "2", "3", "4", "5"]


def test_a_stream_that_is_stuck_holds_up_nothing_and_the_lines_come_when_it_is_free(writer: LogWriter) -> None:
    stream = stuck(writer)

    writer.put(stream, "second\n")
    assert not writer.flush(0)
    stream.free.set()

    assert writer.flush(10)
    assert stream.lines == ["first", "second"]


def test_lines_that_do_not_fit_are_counted_and_the_log_says_how_many(
    writer: LogWriter, caplog: pytest.LogCaptureFixture
) -> None:
    stream = stuck(writer)

    for _ in range(10):
        writer.put(stream, "x" * 29 + "\n")
    stream.free.set()

    assert writer.flush(10)
    assert writer.close(10)
    assert len(stream.lines) == 4
    assert [record.getMessage() for record in caplog.records] == [
        "7 log lines were lost: the log was not read or written as fast as lines came"
    ]


@pytest.mark.parametrize("error", [OSError(errno.ENOSPC, "No space left on device"), ValueError("closed file")])
def test_a_stream_that_fails_is_reported_once_and_stops_nothing(
    writer: LogWriter, error: Exception, capsys: pytest.CaptureFixture[str]
) -> None:
    other = Stream()

    for _ in range(3):
        writer.put(Stream(error), "lost\n")
    writer.put(other, "kept\n")

    assert writer.flush(10)
    assert other.lines == ["kept"]
    assert capsys.readouterr().err.splitlines() == [f"naiad: log lines are lost: {type(error).__name__}: {error}"]


def test_a_writer_that_is_stuck_is_given_up_at_the_end(writer: LogWriter) -> None:
    stream = stuck(writer)

    assert not writer.close(0)

    stream.free.set()


def test_the_child_of_a_fork_writes_by_itself(writer: LogWriter, tmp_path: Path) -> None:
    path = tmp_path / "log"

    child = os.fork()
    if not child:
        with path.open("w") as file:
            writer.put(file, "from the child\n")
        os._exit(0)
    os.waitpid(child, 0)

    assert path.read_text() == "from the child\n"


def test_a_record_is_formatted_before_it_waits(writer: LogWriter) -> None:
    stream = stuck(writer)
    changing = ["then"]
    handler = QueuedHandler(writer, stream)

    handler.emit(logging.LogRecord("naiad", logging.INFO, "x.py", 1, "%s", (changing,), None))
    changing[0] = "now"
    stream.free.set()
    handler.flush()

    assert stream.lines == ["first", "['then']"]
