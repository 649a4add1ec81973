"""Access log: one line for each request, as text or JSON, written by a thread of its own."""

import logging
import threading
from collections.abc import Callable
from time import monotonic_ns, time_ns
from typing import Any

from naiad.errors import UnsupportedError
from naiad.server import ServerApi
from naiad_kit.access_lines import FORMS, utc

LOGGER = "naiad.access"
"""The logger that gets the lines. The message of a log record is one or more whole lines."""

LINES = "access_lines"
"""The attribute that marks such a log record, so that formatters add nothing to it."""

NO_PHASES = (0, 0, 0)

_SECOND, _MILLISECOND = 1_000_000_000, 1_000_000
"""Nanoseconds."""

_DELAY = 0.1
"""Seconds for which lines are collected: to wake the thread for each takes longer than to format it."""

_MOST = 100_000
"""The maximum number of lines that wait to be written; further ones are dropped and counted."""

_AT_ONCE = 1000
"""The maximum number of lines in one log record."""


class AccessLog:
    """The access log of a server; `form` is `text` or `json`. Frontends find it with `access_log_of`.

    `write` takes lines that end with a line break; by default they go to the logger `naiad.access`. Lines are written
    within a tenth of a second, in the order in which the requests ended. `lines` are those that wait. While it is not
    `enabled` there are no lines, and requests cost nothing; `switch` changes that.

    A line is formatted on the thread where its request ends. Another thread would share the interpreter with it, so
    that formatting there saves nothing, and passing on the figures costs as much again. Parts that are those of the
    line before are reused; what is left to format is usually two numbers.
    """

    name = "access-log"

    def __init__(self, form: str, write: "Callable[[str], object] | None" = None, enabled: bool = True) -> None:
        self.enabled = enabled
        self._followers: list[Callable[[bool], object]] = []
        self._form = FORMS[form]
        self._queue = self._form.queue
        self._write = write or _log
        self.lines: list[str] = []
        self._time = (0, "")  # the end of the latest millisecond, and its text
        self._second = (-_SECOND, "")  # the begin of the latest second, and its text
        self._end: tuple[object, object, str] = ((), (), "")  # phases, batch, and the end of a line with these
        self._sleeps = True
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

    def caller(self, peer: str, protocol: str, operation: str, model: str = "", version: int = 0) -> str:
        """Who asks what of whom, as a part of a subject; to be kept for further requests of the same client.

        `operation` is the method and path, or the name of the RPC; `model` is "" for a request to no model, `version` 0
        for none.
        """
        return self._form.caller(peer, protocol, operation, model, version)

    def subject(self, caller: str, request_id: str, status: int | str, received: int, sent: int) -> str:
        """The part of the line that says who asked what and got how many bytes; to be kept while it does not change.

        `request_id` is "" for none, `status` a number over HTTP and a name over gRPC.
        """
        return self._form.subject(caller, request_id, status, received, sent)

    def record(
        self,
        subject: str,
        began_ns: int,
        queue_ns: int = 0,
        phases: tuple[int, int, int] = NO_PHASES,
        batch: tuple[Any, ...] = (),
        traceparent: str = "",
    ) -> None:
        """Log a request that ends now. Never waits; for any thread.

        `began_ns` is when its first byte came, by `time.monotonic_ns()`; the others are nanoseconds in the queue and of
        compute input, infer and output, the size of its last batch and why that was closed, and the header
        `traceparent` (W3C Trace Context). The requests of one batch have the same `phases` and `batch`.
        """
        if not self.enabled:  # a connection that was opened before goes on recording
            return
        now = monotonic_ns()
        until, time = self._time
        if now >= until:
            time = self._next_time(now)
        last_phases, last_batch, end = self._end
        if traceparent or phases is not last_phases or batch is not last_batch:
            end = self._form.end(sum(phases) // 1000, batch, traceparent[3:35])
            self._end = ((), (), "") if traceparent else (phases, batch, end)
        self.lines.append(f"{time}{subject}{(now - began_ns) // 1000}{self._queue}{queue_ns // 1000}{end}")
        if self._sleeps:  # `_run` sets it before it takes the lines, so that none is forgotten
            self._sleeps = False
            self._waiting.set()

    def close(self, seconds: float = 1.0) -> None:
        """Write what waits, within so many seconds, and end."""
        self._over.set()
        self._waiting.set()
        self._thread.join(seconds)

    def _next_time(self, now: int) -> str:
        began, second = self._second
        if not 0 <= now - began < _SECOND:
            offset_ns = time_ns() - monotonic_ns()
            seconds = (now + offset_ns) // _SECOND
            began, second = self._second = seconds * _SECOND - offset_ns, utc(seconds)
        milliseconds = (now - began) // _MILLISECOND
        time = self._form.time.format(f"{second}.{milliseconds:03d}Z")
        self._time = (began + (milliseconds + 1) * _MILLISECOND, time)
        return time

    def _run(self) -> None:
        while not self._over.is_set():
            self._waiting.wait()
            self._over.wait(_DELAY)
            self._waiting.clear()
            self._sleeps = True
            self._flush()
        self._flush()

    def _flush(self) -> None:
        lines = self.lines
        while lines:
            lost = len(lines) - _MOST
            if lost > 0:
                del lines[:lost]
                _logger.warning("%d lines of the access log were lost: requests came faster", lost)
            text = "".join(lines[:_AT_ONCE])
            del lines[:_AT_ONCE]
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
