"""Timers of a connection: handshake, idling, age, keepalive pings, and the pings of the client (gRPC's rules)."""

from dataclasses import dataclass
from enum import Enum
from math import inf

from naiad_grpc.http2.frames import ErrorCode, Http2Error

_WITHOUT_CALLS = 7200.0
"""The seconds that a client must leave between two pings without a call (gRPC proposal A8)."""


@dataclass(frozen=True, slots=True)
class Timeouts:
    """The limits of a connection, in seconds but for the counts; 0 sets no limit of a count."""

    handshake: float = 20.0
    idle: float = inf
    age: float = inf
    age_grace: float = inf
    keepalive: float = inf
    keepalive_timeout: float = 20.0
    keepalive_without_calls: bool = False
    most_pings: int = 2
    least_ping_interval: float = 300.0
    most_ping_strikes: int = 2
    stall: float = 120.0
    header_block: float = 20.0


class Action(Enum):
    """What a timer demands."""

    PING = "ping"
    DRAIN = "drain"
    """Accept no new calls, and close after the last one."""
    END = "end"


class Timers:
    """Decides by the time alone; `next` is when `due` must be called again.

    `answered_at` is when headers or data of a call were last sent, `block_since` when an incomplete header block began.
    """

    __slots__ = (
        "_born",
        "_last_ping",
        "_pinged_last",
        "_pings_sent",
        "_strikes",
        "_timeouts",
        "answered_at",
        "block_since",
        "drained_at",
        "greeted",
        "heard_at",
        "idle_since",
        "pinged_at",
    )

    def __init__(self, timeouts: Timeouts, now: float) -> None:
        self._timeouts = timeouts
        self._born = self.heard_at = now
        self.idle_since: float | None = now
        self.greeted = False
        self.drained_at: float | None = None
        self.pinged_at: float | None = None
        self.block_since: float | None = None
        self.answered_at = -inf
        self._pings_sent = 0
        self._pinged_last = -inf
        self._last_ping = -inf
        self._strikes = 0

    def ping_received(self, now: float, has_calls: bool) -> None:
        """Count a ping of the client. Raises Http2Error when it pings too often."""
        timeouts = self._timeouts
        if self.answered_at >= self._last_ping:  # we have sent something since: pings start anew
            self._strikes = 0
        else:
            calls = has_calls or timeouts.keepalive_without_calls
            interval = timeouts.least_ping_interval if calls else max(_WITHOUT_CALLS, timeouts.least_ping_interval)
            if now - self._last_ping < interval:
                self._strikes += 1
                if self._strikes > timeouts.most_ping_strikes > 0:
                    raise Http2Error(ErrorCode.ENHANCE_YOUR_CALM, "too_many_pings")
        self._last_ping = now

    def next(self) -> float:
        """When `due` must be called again; too early is no harm."""
        timeouts = self._timeouts
        if not self.greeted:
            return self._born + timeouts.handshake
        moments = [self._age_at()]
        if self.idle_since is not None:
            moments.append(self.idle_since + timeouts.idle)
        if self.block_since is not None:
            moments.append(self.block_since + timeouts.header_block)
        if self.pinged_at is not None:
            moments.append(self.pinged_at + timeouts.keepalive_timeout)
        elif self._may_ping():
            moments.append(self.heard_at + timeouts.keepalive)
        return min(moments)

    def due(self, now: float) -> tuple[Action, ErrorCode, str] | None:
        """What must be done at `now`, if anything: the action, and its code and reason for GOAWAY."""
        timeouts = self._timeouts
        if not self.greeted:
            late = now >= self._born + timeouts.handshake
            return (Action.END, ErrorCode.SETTINGS_TIMEOUT, "handshake_timeout") if late else None
        if self.pinged_at is not None:
            if self.heard_at >= self.pinged_at:  # the clock of uvloop has a resolution of a millisecond
                self.pinged_at = None
            elif now >= self.pinged_at + timeouts.keepalive_timeout:
                return Action.END, ErrorCode.NO_ERROR, "ping_timeout"
        if self.block_since is not None and now >= self.block_since + timeouts.header_block:
            return Action.END, ErrorCode.ENHANCE_YOUR_CALM, "header_block_timeout"
        if now >= self._age_at():
            if self.drained_at is None:
                return Action.DRAIN, ErrorCode.NO_ERROR, "max_age"
            return Action.END, ErrorCode.NO_ERROR, "max_age_grace"
        if self.idle_since is not None and now >= self.idle_since + timeouts.idle:
            return Action.DRAIN, ErrorCode.NO_ERROR, "max_idle"
        if self.pinged_at is None and self._may_ping() and now >= self.heard_at + timeouts.keepalive:
            self._pings_sent = 1 if self.answered_at > self._pinged_last else self._pings_sent + 1
            self.pinged_at = self._pinged_last = now
            return Action.PING, ErrorCode.NO_ERROR, ""
        return None

    def _age_at(self) -> float:
        if self.drained_at is not None:
            return self.drained_at + self._timeouts.age_grace
        return self._born + self._timeouts.age

    def _may_ping(self) -> bool:
        timeouts = self._timeouts
        if timeouts.keepalive == inf or (self.idle_since is not None and not timeouts.keepalive_without_calls):
            return False
        if not timeouts.most_pings or self._pings_sent < timeouts.most_pings:
            return True
        return self.answered_at > self._pinged_last  # we have sent something since: pings start anew
