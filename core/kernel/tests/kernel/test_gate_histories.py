"""Random histories of queues that share resources: nothing is held twice, forgotten or waited for in vain."""

import random
from collections import Counter
from collections.abc import Callable, Sequence
from time import monotonic_ns

import pytest

from naiad._engine.call import Call
from naiad._engine.execution import Execution
from naiad._engine.queue import ModelQueue
from naiad._engine.responses import ResponseBuilder
from naiad.backend import Placement
from naiad.default_scheduler import FifoScheduler
from naiad.errors import WorkerDiedError
from naiad.extend import Suspension
from naiad.scheduler import Decision, Dispatch, Scheduler
from naiad.types import Request, Response
from naiad_config import ModelConfig, ModelInstanceGroup, ModelRateLimiter, RateLimiterResource
from naiad_rate_limiter.gates import ResourceGates
from naiad_rate_limiter.limiter import RateLimiter
from naiad_rate_limiter.resources import Pool, needs_of
from naiad_statistics.versions import VersionCounters
from naiad_testing.loops import jump, turns


class Choosy(FifoScheduler):
    """Each ticket wants one of three slots, whichever others are idle: grants for these are of no use to it."""

    def decide(self, now: float, idle: Sequence[int]) -> Decision:
        dispatches = []
        for ticket in list(self._waiting):
            slot = ticket % 3
            if slot in idle and slot not in [each.instance for each in dispatches]:
                del self._waiting[ticket]
                dispatches.append(Dispatch(slot, (ticket,), "its own"))
        return Decision(tuple(dispatches))


class Patient(FifoScheduler):
    """Does not take what is idle when it is first asked, but when it is asked again."""

    _has_waited = False

    def decide(self, now: float, idle: Sequence[int]) -> Decision:
        if not self._waiting or not idle:
            return Decision()
        self._has_waited = not self._has_waited
        if self._has_waited:
            return Decision(wake_at=now + 1)
        taken = tuple(self._oldest() for _ in range(min(2, len(self._waiting))))
        return Decision((Dispatch(idle[0], taken, "batch"),))


class Model:
    """One queue with three slots, whose batches land in `executing`."""

    def __init__(self, name: str, make: Callable[[], Scheduler], needs: dict[str, int], gates: ResourceGates) -> None:
        resources = tuple(
            RateLimiterResource(name=resource, global_=True, count=count) for resource, count in needs.items()
        )
        group = ModelInstanceGroup(name=name, rate_limiter=ModelRateLimiter(resources=resources))
        placements = [Placement(f"{name}_{index}", "CPU", 0, group) for index in range(3)]
        self.needs = needs_of(placements[0]).units
        self.executing: list[Execution] = []
        self.suspended: dict[int, tuple[Suspension, list[str]]] = {}
        self.away: list[int] = []
        self.calls: dict[str, Call] = {}
        self.over: Counter[str] = Counter()
        config = ModelConfig(name=name)
        reader = ResponseBuilder(config, 1)
        self.gate = gates.admit(config, placements)
        if self.gate is not None:
            self.gate.enter(placements)
        self.queue = ModelQueue(reader, VersionCounters(devices=[-1] * 3), self.gate)
        self.queue.open(make, [self.executing.append] * 3)
        for slot in range(3):
            self.queue.free(slot)

    def submit(self, name: str) -> None:
        def deliver(_: object) -> None:
            self.over[name] += 1

        self.calls[name] = self.queue.submit(Request("m", {}, id=name), 1, None, deliver)

    def take_back(self, chance: random.Random) -> None:
        open_calls = [name for name, call in self.calls.items() if not call.over]
        if open_calls:
            name = chance.choice(open_calls)
            self.calls[name].cancel()
            self.over[name] += 1

    def computing(self) -> list[Execution]:
        return [execution for execution in self.executing if execution.slot not in self.suspended]

    def finish(self, chance: random.Random) -> None:
        if self.computing():
            execution = self._taken(chance.choice(self.computing()))
            execution.outcomes = [Response("m", 1, request.id, {}) for request in execution.batch.requests]
            self.queue.done(execution)

    def die(self, chance: random.Random) -> None:
        if self.executing:
            execution = self._taken(chance.choice(self.executing))
            execution.error = WorkerDiedError("gone")
            suspension, gone_on = self.suspended.pop(execution.slot, (None, []))
            self.queue.lose(execution.slot)
            if suspension is not None and not gone_on:  # its answer comes too late, and no execution waits for it
                suspension.resume(lambda: gone_on.extend(["asked", "gone on"]))
            assert suspension is None or gone_on == ["asked", "gone on"]
            self.queue.lost(execution)
            self.away.append(execution.slot)

    def come_back(self) -> None:
        if self.away:
            self.queue.free(self.away.pop())

    def suspend(self, chance: random.Random) -> None:
        if self.computing() and self.gate is not None:
            slot = chance.choice(self.computing()).slot
            suspension = self.queue.suspend(slot)
            assert suspension is not None
            self.suspended[slot] = suspension, []

    def resume(self) -> None:
        for suspension, gone_on in self.suspended.values():
            if not gone_on:
                gone_on.append("asked")
                suspension.resume(lambda gone_on=gone_on: gone_on.append("gone on"))  # type: ignore[misc]
                break

    def settle_suspensions(self) -> None:
        self.suspended = {slot: each for slot, each in self.suspended.items() if "gone on" not in each[1]}

    def _taken(self, execution: Execution) -> Execution:
        self.executing.remove(execution)
        execution.started_ns = execution.done_ns = monotonic_ns()
        return execution


def check(models: Sequence[Model], limiter: RateLimiter) -> None:
    """What is held is what those that compute need, and no more than there is."""
    used: Counter[Pool] = Counter()
    for model in models:
        model.settle_suspensions()
        for _ in model.computing():
            used.update(model.needs)
    for pool, units in limiter.capacity().items():
        assert limiter.in_use(pool) == used[pool] <= units


@pytest.mark.parametrize("seed", range(25))
async def test_whatever_happens_what_computes_fits_and_everything_is_answered(seed: int) -> None:
    chance = random.Random(seed)
    gates = ResourceGates(RateLimiter())
    models = [
        Model("fifo", FifoScheduler, {"R": 1}, gates),
        Model("choosy", Choosy, {"R": 1, "S": 2}, gates),
        Model("patient", Patient, {"S": 1}, gates),
        Model("large", FifoScheduler, {"R": 2, "S": 2}, gates),
        Model("free", FifoScheduler, {}, gates),
    ]

    for step in range(150):
        model = chance.choice(models)
        what = chance.choices(
            [
                lambda m=model, n=step: m.submit(str(n)),
                lambda m=model: m.finish(chance),
                lambda m=model: m.take_back(chance),
                lambda m=model: m.die(chance),
                model.come_back,
                lambda m=model: m.suspend(chance),
                model.resume,
            ],
            [8, 5, 1, 1, 2, 2, 3],
        )[0]
        what()
        await turns(20)
        check(models, gates.limiter)
    for _ in range(400):
        for model in models:
            model.come_back()
            model.resume()
            model.settle_suspensions()
            model.finish(chance)
        await jump(2)
        if not any(model.queue.outstanding or model.executing or model.suspended for model in models):
            break

    check(models, gates.limiter)
    for model in models:
        assert (model.queue.outstanding, model.executing, model.suspended) == (0, [], {})
        assert model.over == Counter(model.calls.keys())


async def test_executions_of_a_version_that_is_given_up_wait_for_nothing() -> None:
    gates = ResourceGates(RateLimiter())
    given_up, other = (Model(name, FifoScheduler, {"R": 1}, gates) for name in ("given_up", "other"))
    went_on: list[str] = []
    given_up.submit("1")
    await turns()
    assert given_up.gate is not None
    early, late = given_up.gate.suspend(0), given_up.gate.suspend(0)
    early.resume(lambda: went_on.append("early"))
    other.submit("2")
    await turns()

    given_up.gate.close()
    late.resume(lambda: went_on.append("late"))
    given_up.gate.suspend(0).resume(lambda: went_on.append("later still"))

    assert went_on == ["early", "late", "later still"]
    assert len(other.executing) == 1
