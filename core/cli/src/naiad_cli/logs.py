"""Logging of `naiad serve`: the destinations and the formats (default, ISO8601 and JSON).

Everything that Naiad logs goes through the logger `naiad`; what concerns one model goes through `naiad.model`, whose
records carry `model`, `version` and `request_id` where these are known.
"""

import json
import logging
import os
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any, TextIO

from naiad.errors import UsageError
from naiad_cli.log_repeats import RepeatFilter
from naiad_cli.log_writer import LogStream, LogWriter, QueuedHandler
from naiad_kit.access_log import LINES
from naiad_kit.frontends.log_control import LogControl, switched_off, threshold
from naiad_kit.quoting import quoted, without_controls

_CONTEXT = ("model", "version", "request_id")
_COLOURS = {"I": "\033[32m", "W": "\033[33m", "E": "\033[31m", "F": "\033[1;31m"}
_RESET = "\033[0m"


@contextmanager
def logging_to(
    settings: Mapping[str, Any],
    stdout: LogStream | None = None,
    stderr: LogStream | None = None,
    rewrite: Callable[[str], str] = str,
) -> Iterator[LogControl]:
    """Log as the `log-…` options say, and as before afterwards; what is given changes that in between.

    Up to INFO goes to `stdout`, the rest to `stderr` (both the process's own by default), all of it to `log-file` where
    that is set. Lines of other libraries appear from WARNING up. `rewrite` changes the text of each message. Raises
    UsageError when the file cannot be opened. A thread writes the lines, so that a slow stream or file delays
    no other thread.
    """
    with ExitStack() as undo:
        writer = LogWriter(rewrite)
        handlers = _handlers(settings, writer, stdout or sys.stdout, stderr or sys.stderr, undo)
        writer.start()
        undo.callback(writer.close)
        switches, repeats = _Switches(), RepeatFilter()

        def apply(options: Mapping[str, Any]) -> None:
            switches.off = switched_off(options)
            for handler, colours in handlers:
                handler.setFormatter(formatter(options["log-format"], colours))
            logging.getLogger("naiad").setLevel(threshold(options["log-verbose"]))

        undo.enter_context(_level(logging.getLogger(), logging.WARNING))
        undo.enter_context(_level(logging.getLogger("naiad"), logging.INFO))
        apply(settings)
        for handler, _ in handlers:
            undo.callback(handler.close)
            handler.addFilter(switches.lets_through)
            handler.addFilter(repeats.lets_through)  # after the filter of levels: a handler counts what it writes
            logging.getLogger().addHandler(handler)
            undo.callback(logging.getLogger().removeHandler, handler)
        yield LogControl(settings, apply)


def flush_log() -> None:
    """Wait until what was logged is written, for a second at most where `logging_to` set the log up."""
    for handler in logging.getLogger().handlers:
        handler.flush()


def _handlers(
    settings: Mapping[str, Any], writer: LogWriter, stdout: LogStream, stderr: LogStream, undo: ExitStack
) -> list[tuple[logging.Handler, bool]]:
    """The handlers, and whether what they write to takes colours."""
    path = settings["log-file"]
    if path:
        try:
            file = Path(path).open("a", encoding="utf-8", errors="backslashreplace")  # noqa: SIM115 - `undo` closes it
        except OSError as error:
            raise UsageError(
                f"--log-file {path} cannot be opened: {error.strerror}; give a file in a folder that can be written"
            ) from error
        undo.callback(_close, file)
        return [(QueuedHandler(writer, file), False)]
    quiet, loud = QueuedHandler(writer, stdout), QueuedHandler(writer, stderr)
    quiet.addFilter(lambda record: record.levelno < logging.WARNING)
    loud.addFilter(lambda record: record.levelno >= logging.WARNING)
    return [(quiet, takes_colours(stdout)), (loud, takes_colours(stderr))]


def _close(file: TextIO) -> None:
    """Close it; a full disk is no reason for a server to end badly, and was reported on stderr."""
    with suppress(OSError):
        file.close()


def takes_colours(stream: LogStream) -> bool:
    """Whether the stream is a terminal whose user has not set NO_COLOR (https://no-color.org)."""
    return stream.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def formatter(name: str, colours: bool = False) -> logging.Formatter:
    """The formatter of that `--log-format`: `default`, `ISO8601` or `json`. Raises UsageError for another."""
    if name == "json":
        return JsonFormatter()
    if name in ("default", "ISO8601"):
        escape = os.environ.get("TRITON_SERVER_ESCAPE_LOG_MESSAGES") != "0"
        return LineFormatter(iso=name == "ISO8601", escape=escape, colours=colours)
    raise UsageError(f"unknown --log-format '{name}'; the formats are default, ISO8601 and json")


class LineFormatter(logging.Formatter):
    """One line a record: level, time (UTC), process id and source line, then the message as a JSON string.

    `I1121 09:30:00.000001 17 server.py:12] "text"`, or with `iso` `2026-11-21T09:30:00Z I 17 server.py:12] "text"`.
    Escaping keeps a message that quotes a request from forging lines; a traceback follows in indented lines.
    """

    def __init__(self, iso: bool = False, escape: bool = True, colours: bool = False) -> None:
        super().__init__()
        self._iso = iso
        self._escape = escape
        self._colours = colours

    def format(self, record: logging.LogRecord) -> str:
        """The record's line, and its traceback if it has one."""
        message = record.getMessage()
        if hasattr(record, LINES):
            return message
        model = getattr(record, "model", "")
        if model and model not in message:
            version = getattr(record, "version", "")
            message = f"model '{model}' version {version}: {message}" if version else f"model '{model}': {message}"
        letter = _letter(record.levelno)
        head = self._head(letter, record)
        if self._colours:
            head = f"{_COLOURS[letter]}{head}{_RESET}"
        first = f"{head} {quoted(message) if self._escape else message}"
        return "\n".join([first, *(f"    {line}" for line in self._traceback(record))])

    def _head(self, letter: str, record: logging.LogRecord) -> str:
        source = f"{record.process} {record.filename}:{record.lineno}]"
        if self._iso:
            return f"{time.strftime('%Y-%m-%dT%H:%M:%SZ', time.gmtime(record.created))} {letter} {source}"
        moment = time.strftime("%m%d %H:%M:%S", time.gmtime(record.created))
        return f"{letter}{moment}.{int(record.created % 1 * 1e6):06d} {source}"

    def _traceback(self, record: logging.LogRecord) -> list[str]:
        lines = self.formatException(record.exc_info).splitlines() if record.exc_info else []
        return [without_controls(line) for line in lines] if self._escape else lines


class JsonFormatter(logging.Formatter):
    """One JSON object a line: time (UTC, ISO 8601), level, logger, message, and what is known of model and request."""

    def format(self, record: logging.LogRecord) -> str:
        """The record as one line of JSON; a traceback is its `exception`."""
        if hasattr(record, LINES):
            return record.getMessage()
        moment = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(record.created))
        line: dict[str, Any] = {
            "time": f"{moment}.{int(record.created % 1 * 1e6):06d}Z",
            "level": record.levelname,
            "logger": record.name,
            "message": record.getMessage(),
        }
        line |= {key: str(getattr(record, key)) for key in _CONTEXT if getattr(record, key, "")}
        if record.exc_info:
            line["exception"] = self.formatException(record.exc_info)
        return without_controls(json.dumps(line, ensure_ascii=False))


def _letter(level: int) -> str:
    if level >= logging.CRITICAL:
        return "F"
    if level >= logging.ERROR:
        return "E"
    return "W" if level >= logging.WARNING else "I"


class _Switches:
    """Lets through the levels that are switched on; each switch is for its level alone."""

    def __init__(self) -> None:
        self.off: frozenset[str] = frozenset()

    def lets_through(self, record: logging.LogRecord) -> bool:
        return record.levelno < logging.INFO or hasattr(record, LINES) or _letter(record.levelno) not in self.off


@contextmanager
def _level(logger: logging.Logger, level: int) -> Iterator[None]:
    before = logger.level
    logger.setLevel(level)
    try:
        yield
    finally:
        logger.setLevel(before)
