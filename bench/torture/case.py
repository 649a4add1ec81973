"""A hostile case: what it does to a server, and the bounds that the server must hold meanwhile and afterwards."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from bench.torture.server import Setup, Target


@dataclass(frozen=True, slots=True)
class Figure:
    """A measurement and the most that it may be."""

    name: str
    value: float
    most: float
    note: str = ""

    @property
    def holds(self) -> bool:
        return self.value <= self.most


@dataclass(frozen=True, slots=True)
class Bounds:
    """The most that a server may show under one case.

    `kept` and `peak` are growths of its resident memory in MB, after the attack and during it; `wait` is the longest
    wait of a well-behaved client and `stop` the time from SIGTERM to the end, in seconds; `log` is the growth of its
    log in kB, `failures` how many probes of the well-behaved client may fail.
    """

    kept: float = 60
    peak: float = 150
    wait: float = 2
    stop: float = 8
    log: float = 100
    failures: float = 0


@dataclass(frozen=True, slots=True)
class Case:
    """One attack on one fresh server. `attack` returns figures of its own, beside those that every case has."""

    name: str
    attack: Callable[[Target], Sequence[Figure]]
    bounds: Bounds = field(default_factory=Bounds)
    setup: Setup = field(default_factory=Setup)
    probed: bool = True
    """Whether a well-behaved client asks meanwhile; not where `add_sub` cannot be asked."""
    seconds: float = 60
    """An attack that takes longer ends with the server killed."""
    ends: bool = False
    """Whether the attack itself ends the server."""
    after: Callable[[Target], Sequence[Figure]] = lambda _target: ()
    """Figures that can be taken when the server has stopped."""


def count_of(name: str, value: float, most: float = 0) -> list[Figure]:
    """One figure, for attacks that have no other."""
    return [Figure(name, value, most)]
