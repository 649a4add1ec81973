"""Access log: one line for each request, as text or JSON, formatted by a thread of its own."""

import logging
import threading
from collections.abc import Callable, Iterator, Sequence
from json.encoder import encode_basestring
from time import gmtime, monotonic_ns, strftime, time_ns
from typing import Any

from naiad.errors import UnsupportedError
from naiad.server import ServerApi

LOGGER = "naiad.access"
"""The logger that gets the lines. The message of a log record is one or more whole lines."""

LINES = "access_lines"
"""The attribute that marks such a log record, so that formatters add nothing to it."""

NO_PHASES = (0, 0, 0)

Access = tuple[int, str, int, str, int | str, int, int, int, int, tuple[int, int, int], tuple[Any, ...], str]
"""What the log says of one request, a plain tuple because each one is paid for by a request. In order:

* its end, by `time.monotonic_ns()`,
* its subject, from `AccessLog.subject`,
* the version of the model, 0 for none,
* the id of the request, "" for none,
* the status: a number over HTTP, a name over gRPC,
* the bytes of the request and of the answer,
* nanoseconds from its first byte to its end, then in the queue, then of compute input, infer and output,
* the size of its last batch and why that was closed, () for none,
* the caller's header `traceparent` (W3C Trace Context), "" for none.
"""

_DELAY = 0.1
"""Seconds for which entries are collected: waking the thread for each costs more than formatting it."""

_MOST = 100_000
"""The maximum number of entries that wait to be formatted; further ones are dropped and counted."""

_AT_ONCE = 200
"""The maximum number of lines in one log record."""


class AccessLog:
    """The access log of a server; `form` is `text` or `json`. Frontends find it with `access_log_of`.

    `write` takes lines that end with a line break; by default they go to the logger `naiad.access`. Lines are written
    within a tenth of a second. `entries` are those that wait. While it is not `enabled` there are no lines, and
    requests cost nothing; `switch` changes that.
    """

    name = "access-log"

    def __init__(self, form: str, write: "Callable[[str], object] | None" = None, enabled: bool = True) -> None:
        self.enabled = enabled
        self._followers: list[Callable[[bool], object]] = []
        self._is_json = form == "json"
        self._format = _as_json if self._is_json else _as_text
        self._write = write or _log
        self.entries: list[Access] = []
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

    def subject(self, peer: str, protocol: str, operation: str, model: str = "") -> str:
        """Who asked for what, as a part of the line; to be kept for further requests of the same client.

        `operation` is the method and path, or the name of the RPC; `model` is "" for a request to no model.
        """
        if self._is_json:
            texts = map(encode_basestring, (peer, protocol, operation))
            named = encode_basestring(model) if model else "null"
            return '"peer":{},"protocol":{},"operation":{},"model":{}'.format(*texts, named)
        return f"{_word(peer)} {protocol} {_word(operation)} model={_word(model)}"

    def record(self, access: Access) -> None:
        """Log a request. Never waits; for any thread."""
        if not self.enabled:  # a connection that was opened before goes on recording
            return
        self.entries.append(access)
        if not self._waiting.is_set():  # it is cleared before the entries are taken
            self._waiting.set()

    def close(self, seconds: float = 1.0) -> None:
        """Write what waits, within so many seconds, and end."""
        self._over.set()
        self._waiting.set()
        self._thread.join(seconds)

    def _run(self) -> None:
        while not self._over.is_set():
            self._waiting.wait()
            self._over.wait(_DELAY)
            self._waiting.clear()
            self._flush()
        self._flush()

    def _flush(self) -> None:
        entries = self.entries
        while entries:
            lost = len(entries) - _MOST
            if lost > 0:
                del entries[:lost]
                _logger.warning("%d lines of the access log were lost: requests came faster", lost)
            lines = self._format(entries[:_AT_ONCE], time_ns() - monotonic_ns())
            del entries[:_AT_ONCE]
            self._write(lines)


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


def _times(entries: Sequence[Access], offset_ns: int) -> Iterator[str]:
    """The time of each entry in UTC, to the microsecond; the text of a second is made once for all of its entries."""
    now, prefix = -1, ""
    for entry in entries:
        second, micros = divmod((entry[0] + offset_ns) // 1000, 1_000_000)
        if second != now:
            now, prefix = second, strftime("%Y-%m-%dT%H:%M:%S", gmtime(second))
        yield f"{prefix}.{micros:06d}Z"


def _as_text(entries: Sequence[Access], offset_ns: int) -> str:
    lines = []
    for time, entry in zip(_times(entries, offset_ns), entries, strict=True):
        _, subject, version, name, status, received, sent, total, queue, phases, batch, trace = entry
        compute = phases[0] + phases[1] + phases[2]
        lines.append(
            f"{time} {subject} version={version or '-'} id={_word(name) if name else '-'} "
            f"status={status} received={received} sent={sent} total_us={total // 1000} queue_us={queue // 1000} "
            f"compute_us={compute // 1000} batch={batch[0] if batch else '-'} "
            f"closed={_word(str(batch[1])) if batch else '-'} "
            f"trace={_word(trace[3:35]) if trace else '-'}\n"
        )
    return "".join(lines)


def _as_json(entries: Sequence[Access], offset_ns: int) -> str:
    lines = []
    for time, entry in zip(_times(entries, offset_ns), entries, strict=True):
        _, subject, version, name, status, received, sent, total, queue, phases, batch, trace = entry
        compute = phases[0] + phases[1] + phases[2]
        lines.append(
            f'{{"time":"{time}",{subject},"version":{version or "null"},'
            f'"id":{encode_basestring(name) if name else "null"},'
            f'"status":{status if type(status) is int else encode_basestring(str(status))},'
            f'"received_bytes":{received},"sent_bytes":{sent},"total_us":{total // 1000},"queue_us":{queue // 1000},'
            f'"compute_us":{compute // 1000},"batch_size":{batch[0] if batch else "null"},'
            f'"closed":{encode_basestring(str(batch[1])) if batch else "null"},'
            f'"trace_id":{encode_basestring(trace[3:35]) if trace else "null"}}}\n'
        )
    return "".join(lines)


def _word(text: str) -> str:
    """The text, in quotes unless it is one printable word, so that a client cannot forge a line; "-" for none."""
    if text.isalnum():
        return text
    if text.isprintable() and not any(sign in text for sign in ' "=\\'):
        return text or "-"
    return encode_basestring(text)
