"""Candidacy: which worker should run the event loop, by a majority vote over short executions. Pure."""

from typing import NamedTuple


class Allowance(NamedTuple):
    """How long an execution may keep the event loop waiting, in nanoseconds, and how much longer for each request."""

    execution: int
    request: int

    def of(self, requests: int) -> int:
        """That of a batch of so many requests."""
        return min(self.execution + self.request * requests, _LONGEST)


PYTHON = Allowance(250_000, 5_000)
"""For models in Python: they need the interpreter's lock, and gain nothing by running beside the event loop.

Waking a thread and being woken by it cost 60 to 90 µs of latency and as much processor time here.
"""

NATIVE = Allowance(100_000, 20_000)
"""For models that compute without the interpreter's lock, and so can run beside the event loop on another thread.

There each request costs 30 to 60 µs more: as the leader, a native model of 25 µs a request had 1.37 times the
inferences/s at 16.
"""

_LONGEST = 600_000
"""Nanoseconds that no batch may exceed, however large it is."""

_MEMORY = 64
_MOST = 4.0
_PROMISING, _TOO_MUCH = 2.0, 1.2
"""Shares of the allowed time: the limit for a candidate, half of whose time may be waiting for the interpreter, and the
limit for the leader.
"""

MAJORITY = 64
"""A worker becomes the leader with this many batches more than all others."""

_FIRST_BAR, _LONGEST_BAR = 1.0, 64.0
"""Seconds that a leader which was too slow may not lead: doubled each time, forgiven after as long a time without."""


class ExecutionCost:
    """How short the executions of one instance are: a running mean of the share of the allowed time that they take."""

    __slots__ = ("_allowed", "_bar", "_barred_until", "_share")

    def __init__(self, allowed: Allowance) -> None:
        self._allowed = allowed
        self._share = _MOST  # a new candidate has to prove itself
        self._bar = _FIRST_BAR
        self._barred_until = 0.0

    def executed(self, took_ns: int, requests: int) -> None:
        """A batch of so many requests took so many nanoseconds."""
        share = took_ns / self._allowed.of(requests)
        self._share += (min(share, _MOST) - self._share) / _MEMORY

    def appointed(self) -> None:
        """The instance leads from now on; what its executions took before is of no account."""
        self._share = 1.0

    def bar(self, now: float) -> None:
        """The instance was too slow as the leader."""
        self._share = _MOST
        self._bar = min(self._bar * 2.0, _LONGEST_BAR) if now < self._barred_until + self._bar else _FIRST_BAR
        self._barred_until = now + self._bar

    @property
    def is_slow(self) -> bool:
        """Whether it takes too long for a leader."""
        return self._share > _TOO_MUCH

    def may_lead(self, now: float) -> bool:
        """Whether it may turn out to be quick enough."""
        return self._share < _PROMISING and now >= self._barred_until


class MajorityVote:
    """Finds the worker that executes more batches than all others together, in constant time and space.

    R. S. Boyer, J S. Moore: MJRTY - A Fast Majority Vote Algorithm (1981). The leader's batches count against rivals.
    Of equals, such as the steps of an ensemble, none leads: one that does keeps the loop from feeding the others, which
    cost the ensemble of three in bench/ 12 % of its requests at 64 and gained 3 % at 1.
    """

    __slots__ = ("_rival", "_votes")

    def __init__(self) -> None:
        self._rival: object = None
        self._votes = 0

    @property
    def is_contested(self) -> bool:
        """Whether another worker than the leader has executed lately, so that the leader's own batches count."""
        return self._votes > 0

    def counted(self, candidate: object, leader: object) -> bool:
        """A quick candidate has executed a batch; whether it should lead from now on. `leader` is None without one."""
        if candidate is not leader and (candidate is self._rival or not self._votes):
            self._rival = candidate
            self._votes += 1
        elif self._votes:
            self._votes -= 1
        if self._votes < MAJORITY:
            return False
        self._rival, self._votes = None, 0
        return True
