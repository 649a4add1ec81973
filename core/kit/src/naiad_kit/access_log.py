"""Access log: one line for each request, as text or JSON, written by a thread of its own."""

import logging
import threading
from collections.abc import Callable
from time import monotonic_ns, time_ns
from typing import Any

from naiad.errors import UnsupportedError
from naiad.foreign_errors import logged
from naiad.server import ServerApi
from naiad_kit.access_lines import FORMS, utc

LOGGER = "naiad.access"
"""The logger that gets the lines. The message of a log record is one or more whole lines."""

LINES = "access_lines"
"""The attribute that marks such a log record, so that formatters add nothing to it."""

_NO_TIMES: dict[str, Any] = {"queue_ns": 0, "phases": (0, 0, 0), "joined": ()}
"""What the call of a request that was not executed may lack."""

_SECOND, _MILLISECOND = 1_000_000_000, 1_000_000
"""Nanoseconds."""
_PER_SECOND = 1000

_DELAY = 0.25
"""Seconds for which lines are collected: to wake the thread and log a record takes as long as to format 200 of them."""

_MOST = 100_000
"""The maximum number of lines that wait to be written; further ones are dropped and counted."""

_AT_ONCE = 4000
"""The maximum number of lines in one log record."""


class AccessLog:
    """The access log of a server; `form` is `text` or `json`. Frontends find it with `access_log_of`.

    `write` takes lines that end with a line break; by default they go to the logger `naiad.access`. Lines are written
    within a quarter of a second, in the order in which the requests ended. While it is not `enabled` there are no
    lines, and requests cost nothing; `switch` changes that.

    A line is formatted where its request ends: a thread of the log's own would share the interpreter with it, and to
    hand the figures over takes as long as to format them.
    """

    name = "access-log"

    def __init__(self, form: str, write: "Callable[[str], object] | None" = None, enabled: bool = True) -> None:
        self.enabled = enabled
        self.form = FORMS[form]
        self._queue = self.form.queue
        self._followers: list[Callable[[bool], object]] = []
        self._write = write or _log
        self._lines: list[str] = []
        self._stamp = (-1, "")  # when the latest millisecond ends, and how its lines begin
        self._second = (-_SECOND, "")  # the begin of the latest second, and its text
        self._end: tuple[object, object, str] = ((), (), "")  # phases, batch, and the end of a line with these
        self._is_awake = False  # the thread is going to write what there is
        self._waiting = threading.Event()
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run, name="naiad-access-log", daemon=True)

    def start(self) -> "AccessLog":
        """Write from now on."""
        self._thread.start()
        return self

    def switch(self, enabled: bool) -> None:
        """Log requests from now on, or none: over HTTP those of connections that are opened later."""
        self.enabled = enabled
        for follow in self._followers:
            follow(enabled)

    def follow(self, switched: Callable[[bool], object]) -> None:
        """Call `switched` now, and when the log is switched on or off."""
        self._followers.append(switched)
        switched(self.enabled)

    def record(self, subject: str, trace: str, began_ns: int, call: Any = None) -> None:
        """Log a request that ends now. Never waits; for any thread.

        `subject` and `trace` are texts of the `form`. `began_ns` is when its first byte came, by
        `time.monotonic_ns()`. `call` is its `naiad.in_flight.InflightRequest`, for the time in the queue, the phases
        and the batch, None without one.
        """
        if not self.enabled:  # a connection that was opened before goes on recording
            return
        ended_ns = monotonic_ns()
        stamp_ends, stamp = self._stamp
        if ended_ns >= stamp_ends:
            stamp = self._next_stamp(ended_ns)
        try:
            queue_ns, phases, batch = call.queue_ns, call.phases, call.joined
        except AttributeError:  # there is no call, or no instance has executed it
            queue_ns, phases, batch = (getattr(call, name, none) for name, none in _NO_TIMES.items())
        last_phases, last_batch, end = self._end
        if phases is not last_phases or batch is not last_batch:  # the requests of a batch have the same
            end = self.form.end(sum(phases) // 1000, batch)
            self._end = phases, batch, end
        total_us = (ended_ns - began_ns) // 1000
        self._lines.append(f"{stamp}{subject}{total_us}{self._queue}{queue_ns // 1000}{end}{trace}")
        if not self._is_awake:
            self._is_awake = True
            self._waiting.set()

    def close(self, seconds: float = 1.0) -> None:
        """Write what waits, within so many seconds, and end."""
        self._over.set()
        self._waiting.set()
        self._thread.join(seconds)

    def _next_stamp(self, now: int) -> str:
        """How the lines of the millisecond of that time begin."""
        second_ns, second = self._second
        milliseconds = (now - second_ns) // _MILLISECOND
        if not 0 <= milliseconds < _PER_SECOND:
            second_ns, second = self._next_second(now)
            milliseconds = (now - second_ns) // _MILLISECOND
        stamp = second + self.form.milliseconds[milliseconds]
        self._stamp = second_ns + (milliseconds + 1) * _MILLISECOND, stamp
        return stamp

    def _next_second(self, now: int) -> tuple[int, str]:
        """The begin of the second of that time, and how its lines begin."""
        offset_ns = time_ns() - monotonic_ns()
        seconds = (now + offset_ns) // _SECOND
        self._second = seconds * _SECOND - offset_ns, self.form.time + utc(seconds)
        return self._second

    def _run(self) -> None:
        while not self._over.is_set():
            self._waiting.wait()
            self._over.wait(_DELAY)
            self._waiting.clear()
            self._is_awake = False  # before it takes the lines, so that none is forgotten
            self._flush()
        self._flush()

    def _flush(self) -> None:
        lines = self._lines
        while lines:
            lost = len(lines) - _MOST
            if lost > 0:
                del lines[:lost]
                _logger.warning("%d lines of the access log were lost: requests came faster", lost)
            text = "".join(lines[:_AT_ONCE])
            del lines[:_AT_ONCE]
            with logged("writing the access log"):
                self._write(text)


_logger = logging.getLogger("naiad")


def access_log_of(server: ServerApi) -> AccessLog | None:
    """The access log of a server, None without one. For frontends, when they start."""
    try:
        return server.service(AccessLog)
    except UnsupportedError:
        return None


def address_of(peer: object) -> str:
    """The address of a socket as text: host and port, or the path of a unix socket; "-" for none."""
    if isinstance(peer, tuple) and len(peer) >= 2:
        return f"[{peer[0]}]:{peer[1]}" if ":" in str(peer[0]) else f"{peer[0]}:{peer[1]}"
    return peer if isinstance(peer, str) and peer else "-"


def _log(text: str) -> None:
    logging.getLogger(LOGGER).info("%s", text[:-1], extra={LINES: True})
