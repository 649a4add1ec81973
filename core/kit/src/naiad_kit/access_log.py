"""Access log: one line for each request, as text or JSON, written by a thread of its own."""

import logging
import threading
from collections.abc import Callable
from time import monotonic_ns, time_ns
from typing import Any

from naiad.errors import UnsupportedError
from naiad.server import ServerApi
from naiad_kit.access_lines import FORMS, LoggedClient, utc

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

_TOGETHER = 64
"""So many requests are formatted together, by the thread on which the last of them ends: that takes about 0.1 ms."""

Recorded = tuple[LoggedClient, tuple[Any, ...], int, int, int, tuple[int, int, int], tuple[Any, ...]]
"""A request that has ended: client, key, begin, end, time in the queue, phases, batch; as `AccessLog.record` has them.

All times are nanoseconds, those of begin and end by `time.monotonic_ns()`.
"""


class AccessLog:
    """The access log of a server; `form` is `text` or `json`. Frontends find it with `access_log_of`.

    `write` takes lines that end with a line break; by default they go to the logger `naiad.access`. Lines are written
    within a tenth of a second, in the order in which the requests ended. While it is not `enabled` there are no lines,
    and requests cost nothing; `switch` changes that.

    Requests are recorded one by one and formatted 64 at a time, by the thread on which the last of them ends. A thread
    of the log's own would share the interpreter with it, so that formatting all of them there would save nothing; it
    formats what is left, ten times a second.
    """

    name = "access-log"

    def __init__(self, form: str, write: "Callable[[str], object] | None" = None, enabled: bool = True) -> None:
        self.enabled = enabled
        self.form = FORMS[form]
        self._followers: list[Callable[[bool], object]] = []
        self._write = write or _log
        self._recorded: list[Recorded] = []
        self._most = 0  # recorded requests without an `_act`; 0 while the thread sleeps, so that the next one wakes it
        self._formatting = threading.Lock()
        self._lines: list[str] = []
        self._time = (0, "")  # the end of the latest millisecond, and its text
        self._second = (-_SECOND, "")  # the begin of the latest second, and its text
        self._end: tuple[object, object, str] = ((), (), "")  # phases, batch, and the end of a line with these
        self._waiting = threading.Event()
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run, name="naiad-access-log", daemon=True)

    def start(self) -> "AccessLog":
        """Write from now on."""
        self._thread.start()
        return self

    def switch(self, enabled: bool) -> None:
        """Log requests from now on, or none: over HTTP those of connections that are opened later."""
        self._format(wait=True)
        self.enabled = enabled
        for follow in self._followers:
            follow(enabled)

    def follow(self, switched: Callable[[bool], object]) -> None:
        """Call `switched` now, and when the log is switched on or off."""
        self._followers.append(switched)
        switched(self.enabled)

    def record(
        self,
        client: LoggedClient,
        key: tuple[Any, ...],
        began_ns: int,
        queue_ns: int = 0,
        phases: tuple[int, int, int] = NO_PHASES,
        batch: tuple[Any, ...] = (),
    ) -> None:
        """Log a request that ends now. Never waits; for any thread.

        `client` describes the request `key`. `began_ns` is when its first byte came, by `time.monotonic_ns()`; the
        others are nanoseconds in the queue and of compute input, infer and output, and the size of its last batch and
        why that was closed. The requests of one batch have the same `phases` and `batch`.
        """
        recorded = self._recorded
        recorded.append((client, key, began_ns, monotonic_ns(), queue_ns, phases, batch))
        if len(recorded) > self._most:
            self._act()

    def close(self, seconds: float = 1.0) -> None:
        """Write what waits, within so many seconds, and end."""
        self._over.set()
        self._waiting.set()
        self._thread.join(seconds)

    def _act(self) -> None:
        """Format what was recorded, or wake the thread, which does so later."""
        if self._most:
            self._format()
        else:
            self._most = _TOGETHER
            self._waiting.set()

    def _format(self, wait: bool = False) -> None:
        """Format what was recorded. While another thread does so: nothing, or with `wait` what is left after that."""
        if not self._formatting.acquire(wait):
            return
        try:
            recorded = self._recorded[:]
            del self._recorded[: len(recorded)]
            if not self.enabled:  # a connection that was opened before goes on recording
                return
            add, queue_us = self._lines.append, self.form.queue
            until, time = self._time
            last_phases, last_batch, end = self._end
            for client, key, began_ns, ended_ns, queue_ns, phases, batch in recorded:
                if key != client.key:
                    client.describe(self.form, key)
                if ended_ns >= until:
                    until, time = self._next_time(ended_ns)
                if phases is not last_phases or batch is not last_batch:
                    last_phases, last_batch, end = phases, batch, self.form.end(sum(phases) // 1000, batch)
                total_us = (ended_ns - began_ns) // 1000
                add(f"{time}{client.subject}{total_us}{queue_us}{queue_ns // 1000}{end}{client.trace}")
            self._time, self._end = (until, time), (last_phases, last_batch, end)
        finally:
            self._formatting.release()

    def _next_time(self, now: int) -> tuple[int, str]:
        """The end of the millisecond of that time, and its text."""
        began, second = self._second
        if not 0 <= now - began < _SECOND:
            offset_ns = time_ns() - monotonic_ns()
            seconds = (now + offset_ns) // _SECOND
            began, second = self._second = seconds * _SECOND - offset_ns, utc(seconds)
        milliseconds = (now - began) // _MILLISECOND
        return began + (milliseconds + 1) * _MILLISECOND, self.form.time.format(f"{second}.{milliseconds:03d}Z")

    def _run(self) -> None:
        while not self._over.is_set():
            self._waiting.wait()
            self._over.wait(_DELAY)
            self._waiting.clear()
            self._most = 0  # before it takes what was recorded, so that nothing is forgotten
            self._flush()
        self._flush()

    def _flush(self) -> None:
        self._format(wait=True)
        lines = self._lines
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


def times_of(call: object) -> tuple[int, tuple[int, int, int], tuple[Any, ...]]:
    """How long a request waited, the times of its phases, and its batch, as far as its call has them."""
    try:
        return call.queue_ns, call.phases, call.joined  # type: ignore[attr-defined]
    except AttributeError:
        return getattr(call, "queue_ns", 0), getattr(call, "phases", NO_PHASES), getattr(call, "joined", ())


def _log(text: str) -> None:
    logging.getLogger(LOGGER).info("%s", text[:-1], extra={LINES: True})
