"""Fake gates, which are their own plugin: a test opens them by hand, and sees what a queue says to them."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from naiad.backend import Placement
from naiad.extend import GateFactory
from naiad.hookspecs import hookimpl
from naiad.metrics import MetricFamily
from naiad_config import ModelConfig

if TYPE_CHECKING:
    from naiad.options import Settings

__all__ = ["FakeGate", "FakeGates", "FakeSuspension"]


class FakeGate:
    """A gate that lets as many slots go at a time as `open` says, when it is asked to `grant`.

    `wanting` are the slots that wait, `holding` those that hold a grant, `executions` those that used one, in order;
    `suspended` are the suspensions so far.
    """

    def __init__(self, open_: int = 0) -> None:
        self.open = open_
        self.wanting: dict[int, Callable[[int], None]] = {}
        self.holding: set[int] = set()
        self.executions: list[int] = []
        self.suspended: list[FakeSuspension] = []
        self.closed = False

    def enter(self, placements: Sequence[Placement]) -> None:
        """All slots are alike here."""

    def want(self, slot: int, granted: Callable[[int], None]) -> None:
        """The slot waits, unless it holds a grant."""
        if slot not in self.holding:
            self.wanting.setdefault(slot, granted)

    def started(self, slot: int) -> None:
        """Write down the execution. Raises AssertionError when the slot holds no grant."""
        if slot not in self.holding:
            raise AssertionError(f"slot {slot} started without a grant")
        self.executions.append(slot)

    def release(self, slot: int) -> None:
        """The slot neither waits nor holds a grant."""
        self.wanting.pop(slot, None)
        self.holding.discard(slot)

    def grant(self) -> None:
        """Let the slots go that came first, as many as `open` says."""
        while self.wanting and len(self.holding) < self.open:
            slot = next(iter(self.wanting))
            granted = self.wanting.pop(slot)
            self.holding.add(slot)
            granted(slot)

    def suspend(self, slot: int) -> "FakeSuspension":
        """The slot holds no grant from now on."""
        self.holding.discard(slot)
        self.suspended.append(FakeSuspension(slot))
        return self.suspended[-1]

    def close(self) -> None:
        """Write it down."""
        self.closed = True


class FakeSuspension:
    """A suspension whose execution a test lets go on: `go_on` is what `resume` got."""

    is_last = True

    def __init__(self, slot: int) -> None:
        self.slot = slot
        self.go_on: Callable[[], None] | None = None

    def resume(self, go_on: Callable[[], None]) -> None:
        """Remember what lets the execution go on."""
        self.go_on = go_on


class FakeGates:
    """Gives every model version a FakeGate: pass it to `Server(plugins=[...])`.

    `gates` are those so far, by model; `open` is that of new ones; `families` are its metrics, `failure` is raised by
    `admit` and `metrics`.
    """

    def __init__(self, open_: int = 1) -> None:
        self.open = open_
        self.gates: dict[str, FakeGate] = {}
        self.families: list[MetricFamily] = []
        self.failure: BaseException | None = None
        self.settings: Settings | None = None

    @hookimpl
    def naiad_gates(self, settings: "Settings") -> Sequence[GateFactory]:
        """The factory itself."""
        self.settings = settings
        return [self]

    def admit(self, config: ModelConfig, placements: Sequence[Placement]) -> FakeGate:
        """A new gate, or `failure`."""
        if self.failure is not None:
            raise self.failure
        self.gates[config.name] = FakeGate(self.open)
        return self.gates[config.name]

    def metrics(self) -> Sequence[MetricFamily]:
        """Its `families`, or `failure`."""
        if self.failure is not None:
            raise self.failure
        return self.families
