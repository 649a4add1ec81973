"""Log writer: a thread with a bounded queue, so that a full pipe or a slow disk never blocks the server.

A line that does not fit in the queue any more is lost, and counted: the log says how many were, once it is read again.
"""

import logging
import os
import sys
import threading
from collections.abc import Callable
from contextlib import suppress
from queue import Empty, SimpleQueue
from time import monotonic
from typing import Any, Protocol

from naiad_kit.sparse_log import SECONDS_BETWEEN

_logger = logging.getLogger("naiad")

MOST_CHARACTERS = 4 * 2**20
"""The most text that may wait to be written, in characters."""

FLUSH_SECONDS = 1.0
_LINES_AT_ONCE = 256


class LogStream(Protocol):
    """What lines are written to; a text file is one."""

    def write(self, text: str, /) -> Any:
        """Write the text, which ends with a line break."""
        ...

    def flush(self) -> Any:
        """Hand on what was written."""
        ...

    def isatty(self) -> bool:
        """Whether the stream is a terminal."""
        ...


class LogWriter:
    """Writes lines, as `rewrite` makes them, in the order in which they were put, whatever streams they are for."""

    def __init__(self, rewrite: Callable[[str], str] = str, most_characters: int = MOST_CHARACTERS) -> None:
        self._rewrite = rewrite
        self._most_characters = most_characters
        self._items: SimpleQueue[tuple[LogStream, str] | threading.Event | None] = SimpleQueue()
        self._lock = threading.RLock()  # re-entrant: a `__del__` that runs while it is held may log
        self._waiting = 0
        self._lost = 0
        self._complain_at = 0.0
        self._process = os.getpid()
        self._thread = threading.Thread(target=self._run, name="naiad-log", daemon=True)

    def start(self) -> None:
        """Write from now on."""
        self._thread.start()

    def put(self, stream: LogStream, text: str) -> None:
        """Write the text, or lose it where too much waits. Never waits; for any thread."""
        if os.getpid() != self._process:  # the child of a fork has no such thread
            _write(stream, text)
            return
        with self._lock:
            if self._waiting + len(text) > self._most_characters:
                self._lost += 1
                return
            self._waiting += len(text)
        self._items.put((stream, text))

    def flush(self, seconds: float = FLUSH_SECONDS) -> bool:
        """Wait until all that was put is written; whether that took no longer than so many seconds."""
        if os.getpid() != self._process or not self._thread.is_alive():
            return True
        written = threading.Event()
        self._items.put(written)
        return written.wait(seconds)

    def close(self, seconds: float = FLUSH_SECONDS) -> bool:
        """Write what waits and end; whether that took no longer than so many seconds."""
        self._items.put(None)
        self._thread.join(seconds)
        return not self._thread.is_alive()

    def _run(self) -> None:
        ended = False
        while not ended:
            items = self._take()
            for item in items:
                if item is None:
                    ended = True
                elif isinstance(item, threading.Event):
                    item.set()
                else:
                    self._write(*item)
            self._report_loss()

    def _take(self) -> list[tuple[LogStream, str] | threading.Event | None]:
        """Everything that waits, up to a number of items; neighbours for one stream as one text."""
        taken = [self._items.get()]
        for _ in range(_LINES_AT_ONCE):
            try:
                item = self._items.get_nowait()
            except Empty:
                break
            last = taken[-1]
            if isinstance(item, tuple) and isinstance(last, tuple) and item[0] is last[0]:
                taken[-1] = (last[0], last[1] + item[1])
            else:
                taken.append(item)
        return taken

    def _write(self, stream: LogStream, text: str) -> None:
        try:
            _write(stream, self._rewrite(text))
        except Exception as error:  # noqa: BLE001 - a full disk, a closed stream: the server goes on
            self._complain(error)
        with self._lock:
            self._waiting -= len(text)

    def _report_loss(self) -> None:
        """Say how many lines were lost, when at least half of the queue is free: not once for each lost line."""
        with self._lock:
            if not self._lost or self._waiting > self._most_characters // 2:
                return
            lost, self._lost = self._lost, 0
        _logger.warning("%d log lines were lost: the log was not read or written as fast as lines came", lost)

    def _complain(self, error: Exception) -> None:
        """Say on stderr why lines are lost, once a minute."""
        if monotonic() < self._complain_at:
            return
        self._complain_at = monotonic() + SECONDS_BETWEEN
        with suppress(Exception):
            sys.stderr.write(f"naiad: log lines are lost: {type(error).__name__}: {error}\n")
            sys.stderr.flush()


def _write(stream: LogStream, text: str) -> None:
    stream.write(text)
    stream.flush()


class QueuedHandler(logging.Handler):
    """Formats records on the thread that logs, and puts the lines in the queue of a writer."""

    def __init__(self, writer: LogWriter, stream: LogStream) -> None:
        super().__init__()
        self._writer = writer
        self._stream = stream

    def emit(self, record: logging.LogRecord) -> None:
        """Put the record's line in the queue."""
        try:
            self._writer.put(self._stream, self.format(record) + "\n")
        except Exception:  # noqa: BLE001 - what cannot be formatted is reported on stderr by logging itself
            self.handleError(record)

    def flush(self) -> None:
        """Wait a while until what was logged is written."""
        self._writer.flush()
