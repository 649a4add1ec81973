"""Execution gates of the rate limiter: each lets slots of one model version execute when resources are granted."""

import functools
import logging
from collections.abc import Callable, Sequence

from naiad.backend import Placement
from naiad.foreign_errors import logged
from naiad.options import Settings
from naiad_config import ModelConfig
from naiad_kit.metrics import MetricFamily, Sample
from naiad_rate_limiter.limiter import RateLimiter
from naiad_rate_limiter.options import rate_limiter_of
from naiad_rate_limiter.resources import Pool, needs_of
from naiad_rate_limiter.suspensions import OneSuspension, SuspendedExecution

_logger = logging.getLogger("naiad")

_METRICS = (
    ("naiad_rate_limit_capacity", "Units of a resource that executions share"),
    ("naiad_rate_limit_in_use", "Units of a resource that executions hold right now"),
    ("naiad_rate_limit_waiting", "Instances that have work and wait for the resource right now"),
)


def gates_of(settings: Settings) -> "list[ResourceGates]":
    """The gates that the options ask for, none without limits. Raises InvalidArgumentError."""
    limiter = rate_limiter_of(settings)
    if limiter is not None:
        return [ResourceGates(limiter)]
    if settings["rate-limit-resource"]:
        _logger.warning("--rate-limit-resource changes nothing without --rate-limit=execution_count")
    return []


class ResourceGates:
    """Makes the gates of all model versions; see `naiad.extend.GateFactory`. For the event loop's thread."""

    def __init__(self, limiter: RateLimiter) -> None:
        self.limiter = limiter
        self._by_number: dict[int, Callable[[], None]] = {}

    def admit(self, config: ModelConfig, placements: Sequence[Placement]) -> "ResourceGate | None":
        """The gate of a version with these instances, None when no group of theirs names a resource.

        Raises InvalidArgumentError when the instances need more than there is, or count a resource in another scope.
        """
        needs = [needs_of(each) for each in placements if not each.group.passive]
        if not any(each.units for each in needs):
            return None
        return ResourceGate(self, self.limiter.admit(needs))

    def metrics(self) -> list[MetricFamily]:
        """For each pool of resources, the units there are, those in use and the slots that wait for some."""
        rows = [
            ((("resource", pool.resource), ("device", pool.device)), self._figures(pool, units))
            for pool, units in self.limiter.capacity().items()
        ]
        return [
            MetricFamily(name, text, "gauge", [Sample(labels, figures[index]) for labels, figures in rows])
            for index, (name, text) in enumerate(_METRICS)
        ]

    def _figures(self, pool: Pool, units: int) -> tuple[int, int, int]:
        return units, self.limiter.in_use(pool), self.limiter.waiting_for(pool)

    def enter(self, member: int, placement: Placement, granted: Callable[[], None]) -> int:
        """A slot of an admitted version; returns its number. `granted` is called for each of its grants."""
        number = self.limiter.enter(member, needs_of(placement))
        self._by_number[number] = granted
        return number

    def leave(self, member: int, numbers: Sequence[int]) -> None:
        """The version and its slots are gone."""
        for number in numbers:
            del self._by_number[number]
        self.limiter.dismiss(member)
        self.grant()

    def grant(self) -> None:
        """Let every slot execute whose resources are granted."""
        for number in self.limiter.grants():
            with logged("letting a slot execute"):  # the slots behind it hold their resources already
                self._by_number[number]()


class ResourceGate:
    """The gate of one model version whose executions need resources; see `naiad.extend.ExecutionGate`."""

    def __init__(self, gates: ResourceGates, member: int) -> None:
        self._gates = gates
        self._limiter = gates.limiter
        self._member: int | None = member
        self._numbers: list[int] = []
        self._granted: dict[int, Callable[[int], None]] = {}
        self._suspended: dict[int, SuspendedExecution] = {}

    def enter(self, placements: Sequence[Placement]) -> None:
        """The version has one slot for each of these."""
        if self._member is None:
            return
        for slot, placement in enumerate(placements):
            self._numbers.append(self._gates.enter(self._member, placement, functools.partial(self._go, slot)))

    def want(self, slot: int, granted: Callable[[int], None]) -> None:
        """The slot is free and waits for its resources; `granted` is called when it has them."""
        if self._member is not None:
            self._granted[slot] = granted
            self._limiter.want(self._numbers[slot])

    def started(self, slot: int) -> None:
        """The slot uses its grant."""
        if self._member is not None:
            self._limiter.started(self._numbers[slot])

    def release(self, slot: int) -> None:
        """The slot holds nothing and waits for nothing; what was suspended there has returned."""
        if self._member is not None:
            self._limiter.forget(self._numbers[slot])
        self._end_suspension(slot)

    def grant(self) -> None:
        """Let every slot execute whose resources are granted, of any version."""
        self._gates.grant()

    def suspend(self, slot: int) -> OneSuspension:
        """The execution at the slot waits, and gives back what it holds until all its waits are over."""
        execution = self._suspended.setdefault(slot, SuspendedExecution())
        if not execution.open_waits and self._member is not None:
            self._limiter.forget(self._numbers[slot])
            self._gates.grant()
        return OneSuspension(execution, functools.partial(self._resume, slot))

    def close(self) -> None:
        """The version is gone, and what its slots held with it; nothing is limited any more."""
        member, self._member = self._member, None
        if member is not None:
            self._gates.leave(member, self._numbers)
            for slot in list(self._suspended):
                self._end_suspension(slot)

    def _resume(self, slot: int) -> None:
        if self._member is None:
            self._end_suspension(slot)
        else:
            self._limiter.want(self._numbers[slot], resumes=True)
            self._gates.grant()

    def _go(self, slot: int) -> None:
        if slot in self._suspended:
            self._end_suspension(slot)
        else:
            self._granted.pop(slot)(slot)

    def _end_suspension(self, slot: int) -> None:
        execution = self._suspended.pop(slot, None)
        if execution is not None:
            execution.end()
