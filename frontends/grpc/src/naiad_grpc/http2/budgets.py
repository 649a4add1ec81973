"""Budgets of one connection against floods: token buckets for the frames with which clients have attacked servers.

CVE-2023-44487 (rapid reset), CVE-2025-8671 (MadeYouReset), and the floods of 2019 (CVE-2019-9511 to 9518): ping,
settings, priority, empty DATA. A spent budget ends the connection with GOAWAY and ENHANCE_YOUR_CALM.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from naiad_grpc.http2.frames import (
    DATA,
    PING,
    PRIORITY,
    RST_STREAM,
    SETTINGS,
    WINDOW_UPDATE,
    ErrorCode,
    Http2Error,
)

OUR_RESETS = -1
"""Streams that we reset because the client broke the protocol on them."""
UNKNOWN = -2
"""Frames of kinds that HTTP/2 does not know, and acknowledgements."""


@dataclass(frozen=True, slots=True)
class Rate:
    """The rate of a token bucket of frames; each answer, message or 16 KiB of a message adds `earned` tokens."""

    burst: float
    per_second: float
    earned: float = 0.0


RATES: Mapping[int, Rate] = MappingProxyType(
    {
        RST_STREAM: Rate(2048, 100, earned=1),
        OUR_RESETS: Rate(200, 10),
        SETTINGS: Rate(50, 5),
        PING: Rate(1000, 100, earned=2),
        PRIORITY: Rate(2048, 100, earned=4),
        DATA: Rate(1000, 100, earned=2),
        WINDOW_UPDATE: Rate(20_000, 2000, earned=8),
        UNKNOWN: Rate(1000, 100, earned=1),
    }
)
"""The rate of each kind of frame; for DATA, of frames that are empty and not the last."""


@dataclass(slots=True)
class _Bucket:
    """A token bucket: it had `tokens` at the time `since`, after `answered` answers."""

    rate: Rate
    tokens: float
    since: float
    answered: int


class Budgets:
    """Token buckets of one connection, one for each kind of frame that its client has sent."""

    __slots__ = ("_buckets", "answered")

    def __init__(self) -> None:
        self.answered = 0
        self._buckets: dict[int, _Bucket] = {}

    def spend(self, kind: int, now: float, frames: int = 1) -> None:
        """Count frames. Raises Http2Error when the budget is spent."""
        bucket = self._buckets.get(kind)
        if bucket is None:
            bucket = self._buckets[kind] = _Bucket(RATES[kind], RATES[kind].burst, now, self.answered)
        rate = bucket.rate
        tokens = bucket.tokens + (now - bucket.since) * rate.per_second
        tokens += (self.answered - bucket.answered) * rate.earned
        tokens = min(tokens, rate.burst) - frames
        if tokens < 0:
            raise Http2Error(ErrorCode.ENHANCE_YOUR_CALM, _REASONS.get(kind, f"too many frames of kind {kind}"))
        bucket.tokens, bucket.since, bucket.answered = tokens, now, self.answered


_REASONS = MappingProxyType(
    {RST_STREAM: "too_many_resets", OUR_RESETS: "too_many_errors", PING: "too_many_pings", UNKNOWN: "too_many_frames"}
)
