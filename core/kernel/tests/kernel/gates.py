"""A gate that a test opens by hand, and that records what the queue says to it."""

from collections.abc import Callable, Sequence

from naiad.backend import Placement


class HandGate:
    """`grant` lets as many slots go as `open` says. `executions` are the slots that used their grant, in order."""

    def __init__(self, open_: int = 0) -> None:
        self.open = open_
        self.wanting: dict[int, Callable[[int], None]] = {}
        self.holding: set[int] = set()
        self.executions: list[int] = []
        self.suspended: list[HandSuspension] = []
        self.closed = False

    def enter(self, placements: Sequence[Placement]) -> None:
        """Every slot is alike here."""

    def want(self, slot: int, granted: Callable[[int], None]) -> None:
        if slot not in self.holding:
            self.wanting.setdefault(slot, granted)

    def started(self, slot: int) -> None:
        assert slot in self.holding
        self.executions.append(slot)

    def release(self, slot: int) -> None:
        self.wanting.pop(slot, None)
        self.holding.discard(slot)

    def grant(self) -> None:
        while self.wanting and len(self.holding) < self.open:
            slot = next(iter(self.wanting))
            granted = self.wanting.pop(slot)
            self.holding.add(slot)
            granted(slot)

    def suspend(self, slot: int) -> "HandSuspension":
        self.holding.discard(slot)
        self.suspended.append(HandSuspension(slot))
        return self.suspended[-1]

    def close(self) -> None:
        self.closed = True


class HandSuspension:
    """`go_on` is what the queue gave to `resume`."""

    is_last = True

    def __init__(self, slot: int) -> None:
        self.slot = slot
        self.go_on: Callable[[], None] | None = None

    def resume(self, go_on: Callable[[], None]) -> None:
        self.go_on = go_on
