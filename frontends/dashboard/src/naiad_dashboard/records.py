"""Log tail: the service that keeps the last lines of the server's log in bounded memory, for the pages of models."""

import logging
from collections import deque
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from naiad.server import ServerApi

_LINES = 2000
_LETTERS = 2000
"""Characters of a message, and of a traceback's end, that are kept."""
_ACCESS_LOG = "naiad.access"


@dataclass(frozen=True, slots=True)
class LogLine:
    """One line: seconds since the epoch, level, model ("" for none), message, and a traceback if it has one."""

    at: float
    level: str
    model: str
    message: str
    traceback: str = ""

    @property
    def cause(self) -> str:
        """The last line of the traceback, "" where there is none or where the message has it."""
        last = self.traceback.rstrip().rpartition("\n")[2]
        return "" if last in self.message else last


class LogTail:
    """Keeps the last lines of the logger `naiad`, from before the first model loads. Reads are for any thread."""

    name = "dashboard"

    def __init__(self) -> None:
        self._handler = _Tail()

    async def start(self, server: "ServerApi") -> None:
        """Keep lines from now on."""
        logging.getLogger("naiad").addHandler(self._handler)

    async def stop(self, seconds: float) -> None:
        """Keep no more lines."""
        logging.getLogger("naiad").removeHandler(self._handler)
        self._handler.close()

    def last(self, count: int, model: str = "") -> list[LogLine]:
        """The last lines in their order: those of that model, or all."""
        return list(islice(self._newest(model), count))[::-1]

    def last_error(self, model: str) -> LogLine | None:
        """The last line of that model from ERROR up."""
        return next((line for line in self._newest(model) if line.level in ("ERROR", "CRITICAL")), None)

    def _newest(self, model: str) -> Iterator[LogLine]:
        return (line for line in reversed(self._handler.lines.copy()) if not model or line.model == model)


class _Tail(logging.Handler):
    """Keeps the lines of records from any thread."""

    def __init__(self) -> None:
        super().__init__()
        self.lines: deque[LogLine] = deque(maxlen=_LINES)
        self._formatter = logging.Formatter()

    def emit(self, record: logging.LogRecord) -> None:
        """Keep a line; one that cannot be formatted is left to the other handlers, which report it."""
        if record.name.startswith(_ACCESS_LOG):
            return
        with suppress(Exception):
            traceback = self._formatter.formatException(record.exc_info) if record.exc_info else ""
            model = str(getattr(record, "model", ""))
            message = record.getMessage()[:_LETTERS]
            self.lines.append(LogLine(record.created, record.levelname, model, message, traceback[-_LETTERS:]))
