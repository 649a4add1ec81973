"""Models that call each other under the rate limiter, on a virtual clock: what happens is recorded, nothing is real."""

import heapq
import random
from collections import Counter, deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import count

from naiad_rate_limiter.limiter import RateLimiter
from naiad_rate_limiter.resources import Needs, Pool


@dataclass(frozen=True)
class SimulatedModel:
    """So many slots, each of which needs that to compute."""

    slots: int
    needs: Needs


@dataclass(eq=False)
class Job:
    """One request: it computes for each of `pieces`, and calls what stands between two of them."""

    model: int
    pieces: Sequence[float]
    calls: Sequence["Job"] = ()
    caller: "tuple[Job, int] | None" = None
    arrived: float = 0.0
    step: int = 0


@dataclass
class History:
    """What became of the jobs: `over` in the order of their ends, `most` that was ever in use of each pool."""

    over: list[Job] = field(default_factory=list)
    most: Counter[Pool] = field(default_factory=Counter)
    starts: list[int] = field(default_factory=list)
    longest_wait: float = 0.0


class Simulation:
    """Plays jobs to the end. Without `lends` a slot keeps what it holds while it waits for another model."""

    def __init__(self, models: Sequence[SimulatedModel], lends: bool = True) -> None:
        self.limiter = RateLimiter()
        self.history = History()
        self.computing: dict[int, Needs] = {}
        self._lends = lends
        self._models = models
        self._queues: list[deque[Job]] = [deque() for _ in models]
        self._idle: list[list[int]] = []
        self._model_of: dict[int, int] = {}
        self._busy: dict[int, Job] = {}
        self._events: list[tuple[float, int, str, int, Job]] = []
        self._number = count()
        self.now = 0.0
        for index, model in enumerate(models):
            member = self.limiter.admit([model.needs])
            self._idle.append([self.limiter.enter(member, model.needs) for _ in range(model.slots)])
            self._model_of |= dict.fromkeys(self._idle[-1], index)

    def run(self, jobs: Sequence[Job]) -> History:
        """Every job arrives at its time; ends when nothing can happen any more."""
        for job in jobs:
            self._later(job.arrived, "arrive", 0, job)
        while self._events:
            self.now, _, what, slot, job = heapq.heappop(self._events)
            if what == "arrive":
                self._arrive(job)
            else:
                self._computed(slot, job)
            self._share_out()
        return self.history

    def _arrive(self, job: Job) -> None:
        job.arrived = self.now
        self._queues[job.model].append(job)
        self._ask(job.model)

    def _ask(self, model: int) -> None:
        """Its idle slots want to start, when there is work."""
        for slot in self._idle[model] if self._queues[model] else ():
            self.limiter.want(slot)

    def _share_out(self) -> None:
        while granted := self.limiter.grants():
            for slot in granted:
                if slot in self._busy:
                    self._compute(slot, self._busy[slot])
                else:
                    self._start(slot)

    def _start(self, slot: int) -> None:
        model = self._model_of[slot]
        if not self._queues[model]:  # another slot of it was quicker
            self.limiter.release(slot)
            return
        job = self._queues[model].popleft()
        self.limiter.started(slot)
        self._idle[model].remove(slot)
        self._busy[slot] = job
        self.history.starts.append(model)
        self.history.longest_wait = max(self.history.longest_wait, self.now - job.arrived)
        self._compute(slot, job)

    def _compute(self, slot: int, job: Job) -> None:
        self.computing[slot] = self._models[job.model].needs
        self._check()
        self._later(self.now + job.pieces[job.step], "computed", slot, job)

    def _computed(self, slot: int, job: Job) -> None:
        del self.computing[slot]
        if job.step < len(job.calls):
            called = job.calls[job.step]
            called.caller = job, slot
            job.step += 1
            if self._lends:
                self.limiter.release(slot)
            self._arrive(called)
            return
        self.limiter.release(slot)
        del self._busy[slot]
        self._idle[job.model].append(slot)
        self.history.over.append(job)
        if job.caller is not None:
            caller, its_slot = job.caller
            if self._lends:
                self.limiter.want(its_slot, resumes=True)
            else:
                self._compute(its_slot, caller)
        self._ask(job.model)

    def _check(self) -> None:
        """Those that compute hold no more than there is."""
        used: Counter[Pool] = Counter()
        for needs in self.computing.values():
            used.update(needs.units)
        for pool, units in used.items():
            assert units <= self.limiter.capacity()[pool]
        self.history.most |= used

    def _later(self, when: float, what: str, slot: int, job: Job) -> None:
        heapq.heappush(self._events, (when, next(self._number), what, slot, job))


POOLS = [Pool("memory", "global"), Pool("cores", "cpu"), Pool("bus", "gpu_0")]


def random_models(chance: random.Random) -> list[SimulatedModel]:
    """Some models with one to three slots; most share resources, some need none."""
    models = []
    for _ in range(chance.randint(2, 6)):
        pools = chance.sample(POOLS, chance.randint(0, len(POOLS)))
        needs = Needs({pool: chance.randint(1, 4) for pool in pools}, chance.randint(1, 5))
        models.append(SimulatedModel(chance.randint(1, 3), needs))
    return models


def random_jobs(chance: random.Random, models: int, jobs: int) -> list[Job]:
    """Jobs that call models of higher numbers, several times and several deep."""
    return [_random_job(chance, models, chance.randrange(models), chance.uniform(0, 10)) for _ in range(jobs)]


def _random_job(chance: random.Random, models: int, model: int, arrived: float = 0.0) -> Job:
    callable_ = range(model + 1, models)
    calls = [
        _random_job(chance, models, chance.choice(callable_)) for _ in range(chance.randint(0, 2) * bool(callable_))
    ]
    return Job(model, [chance.uniform(0.1, 1) for _ in range(len(calls) + 1)], calls, arrived=arrived)


def all_of(jobs: Sequence[Job]) -> int:
    """How many jobs there are, with all that they call."""
    return sum(1 + all_of(job.calls) for job in jobs)
