"""Status line at the bottom of a terminal, below the log lines."""

from collections.abc import Iterator
from contextlib import contextmanager
from threading import Lock

from naiad_cli.log_writer import LogStream

_ERASE = "\r\033[2K"


class StatusLine:
    """One line that stays at the foot of the terminal while other lines are written through `above`."""

    def __init__(self, terminal: LogStream, columns: int) -> None:
        self._terminal = terminal
        self._columns = columns
        self._text = ""
        self._lock = Lock()

    def show(self, text: str) -> None:
        """Replace the line; "" takes it away."""
        with self._lock:
            self._text = text[: self._columns - 1]
            self._terminal.write(_ERASE + self._text)
            self._terminal.flush()

    def above(self, stream: LogStream) -> LogStream:
        """A stream that writes to that one, which is the same terminal, above the line."""
        return _Above(self, stream)

    @contextmanager
    def written_over(self) -> Iterator[None]:
        """Take the line away, and bring it back afterwards; for whole lines only."""
        with self._lock:
            if self._text:
                self._terminal.write(_ERASE)
                self._terminal.flush()
            yield
            if self._text:
                self._terminal.write(self._text)
                self._terminal.flush()


class _Above:
    def __init__(self, status: StatusLine, stream: LogStream) -> None:
        self._status = status
        self._stream = stream

    def write(self, text: str) -> None:
        with self._status.written_over():
            self._stream.write(text)
            self._stream.flush()

    def flush(self) -> None:
        self._stream.flush()

    def isatty(self) -> bool:
        return self._stream.isatty()
