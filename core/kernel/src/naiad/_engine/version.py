"""One loaded version of a model: its configuration, checks, queue, instances and counters in one place."""

import asyncio
import functools
import logging
from collections.abc import Mapping, Sequence
from typing import Any

from naiad._engine.admission import Admission, RequestValidator
from naiad._engine.call import Call
from naiad._engine.instances import Instances
from naiad._engine.queue import ModelQueue
from naiad._engine.responses import ResponseBuilder
from naiad._engine.stages import OfferedStages
from naiad.backend import BackendTraits, Instance, MemoryUsage, Model, ModelContext, Placement
from naiad.codec import BatchCodec, StickyRoutes
from naiad.errors import ShuttingDownError
from naiad.extend import GateFactory, MakeWorker, Suspension
from naiad.foreign_errors import logged
from naiad.in_flight import Occupancy, Occupant
from naiad.reports import InstanceReport, Readiness, SequenceCounts
from naiad.scheduler import SchedulerFactory
from naiad.threads import on_own_thread
from naiad.types import Request
from naiad.warmup import VersionParts, Warmup
from naiad_statistics.reports import ModelStatistics
from naiad_statistics.versions import VersionCounters
from naiad_tensors.devices import Device

_logger = logging.getLogger("naiad.model")


class ModelVersion:
    """Serves one version from its first instance to its last answer. Lives on the event loop's thread.

    `counters` are what it has done since it was loaded, `stages` what plugins put around it. `submit` takes a request
    in: see `Admission.submit`.
    """

    def __init__(
        self,
        context: ModelContext,
        model: Model,
        placements: Sequence[Placement],
        labels: Mapping[str, tuple[str, ...]],
        warmups: Sequence[Warmup],
        worker: MakeWorker,
        counters: VersionCounters,
        gates: GateFactory | None = None,
        codec: BatchCodec | None = None,
        stages: OfferedStages = OfferedStages(),  # noqa: B008 - it is frozen
    ) -> None:
        config = context.config
        self.name, self.version, self.config = config.name, context.version, config
        self.labels = labels
        self._model = model
        self._warmups = warmups
        self._parts = context.parts.values()
        self.counters = counters
        validator = RequestValidator(config)
        responses = ResponseBuilder(config, context.version, getattr(model, "declares_outputs", True))
        read: Any = responses.read if codec is None else functools.partial(codec.read, responses=responses)
        self._layout = responses.layout
        parts = VersionParts(validator.validate, read, responses.layout, codec)
        warm_up = functools.partial(_warm_up, warmups, parts)
        self._gates = gates
        self._gate = None if gates is None else gates.admit(config, placements)
        self._queue = queue = ModelQueue(responses, counters, self._gate, codec)
        self._instances = Instances(model, warm_up, placements, read, worker, queue)
        admission = Admission(context.version, validator, queue, self._instances, stages)
        self.stages, self.submit = admission.stages, admission.submit
        self._closing: asyncio.Task[None] | None = None

    async def start(self, traits: BackendTraits, factory: SchedulerFactory) -> None:
        """Make and warm up every instance, then open the queue.

        Raises what the first failing instance raised; `close` frees what there is.
        """
        instances = self._instances
        await instances.start(traits.loads_in_parallel)
        if self._gate is not None:
            self._gate.enter(instances.placements)
        self.counters.execute_on(instances.devices)
        make_scheduler = functools.partial(factory.create, self.config, len(instances.workers))
        on_cpu = all(gpu < 0 for gpu in instances.devices)  # else models with little to do would share the first GPU
        self._queue.open(make_scheduler, instances.workers, instances.instruct, lowest_first=on_cpu)
        instances.serve()

    def input_devices(self, name: str) -> frozenset[Device]:
        """The devices whose tensors an instance takes as that input; none where it is no rows, or a stage reads it."""
        layout = self._layout
        if self.stages.host_only or (layout is not None and layout.covers(name)):
            return frozenset()
        return self._instances.input_devices

    @property
    def is_gated(self) -> bool:
        """Whether executions may wait for an execution gate."""
        return self._gates is not None

    def in_flight(self, requests: Sequence[Request]) -> Sequence[Call]:
        """Those of these requests that the instances execute, or go on with."""
        named = set(map(id, requests))
        for execution in self._instances.executing():
            if not named.isdisjoint(map(id, execution.batch.requests)):
                calls = tuple(call for call in execution.calls if id(call.request) in named)
                return calls or tuple(execution.calls)  # a batch codec gives the model copies
        return tuple(call for call in self._queue.streaming() if id(call.request) in named)

    def suspend(self, request: Occupant) -> Suspension | None:
        """The execution of that request waits for another model, and gives up its grant; None where it holds none."""
        executing = (each for each in self._instances.executing() if request in each.calls)
        execution = next(executing, None)
        return None if execution is None else self._queue.suspend(execution.slot)

    def occupancy(self) -> Sequence[Occupancy]:
        """The instances, where they execute anything."""
        users = [execution.calls for execution in self._instances.executing()]
        advice = f"give '{self.name}' more instances (instance_group count) than calls wait inside it at once"
        name, slots = f"an instance of model '{self.name}'", len(self._instances.workers)
        return [Occupancy(name, advice, slots, users, self._queue.waiting_calls)] if users else ()

    async def drain(self) -> None:
        """Return when every request taken in has been answered."""
        await self.stages.drained()
        await self._queue.drained()

    async def close(self, grace: float | None = None) -> bool:
        """Fail what still waits, end the instances, free the model; whether that ended within `grace` seconds.

        What executes is answered first, unless it takes longer than that: then it fails too, and nothing is freed. May
        be called again, for what an earlier call is still waiting for.
        """
        self._fail_all(executing=False)
        if self._closing is None:
            self._closing = asyncio.create_task(self._end())
        _, late = await asyncio.wait([self._closing], timeout=grace)
        if late:
            self._closing.cancel()
        if late and grace:  # a load that was given up does not wait at all
            _logger.error("model '%s' version %d did not end in time and is given up", self.name, self.version)
        self._fail_all(executing=True)  # what streams may go on when all instances have ended
        return not late

    def readiness(self) -> Readiness:
        """Ready while at least one instance can serve; the reasons tell what is wrong with the others all the same."""
        reasons = self._instances.reasons_against()
        return Readiness(not all(reasons), tuple(reason for reason in reasons if reason))

    def progress(self) -> str:
        """What its instances execute before they serve, "" while none does."""
        with logged(f"reading the progress of a warm-up of model '{self.name}'", model=self.name):
            return "; ".join(filter(None, (warmup.progress for warmup in self._warmups)))
        return ""

    def instances(self) -> tuple[InstanceReport, ...]:
        """Every instance as it stands."""
        return tuple(instance.report() for instance in self._instances.all)

    @property
    def sticky(self) -> StickyRoutes | None:
        """What keeps requests at this version when it goes out of service, None where nothing does."""
        return self._queue.codec

    def sequences(self) -> SequenceCounts | None:
        """How many sequences there are of a model whose requests come in sequences; None for any other."""
        queue = self._queue
        return None if queue.codec is None else SequenceCounts(queue.codec.live, queue.backlog)

    @property
    def waiting(self) -> int:
        """How many requests wait for their execution."""
        return self._queue.waiting

    @property
    def outstanding(self) -> int:
        """How many requests wait, execute or stream, or are held by a stage."""
        return self.stages.outstanding + self._queue.outstanding

    def statistics(self) -> ModelStatistics:
        """The counters as they stand."""
        return self.counters.report(self.name, self.version, self._memory_usage())

    def _fail_all(self, executing: bool) -> None:
        stopping = "Server is stopping, scheduler for model '{}' has stopped accepting new inference requests"
        error = ShuttingDownError(stopping.format(self.name))
        self.stages.fail_all(error)
        self._queue.fail_all(error, executing)
        self._queue.close()

    async def _end(self) -> None:
        self._queue.retire()
        try:
            await self._instances.close()
        finally:
            if self._gate is not None:  # those that hang, and are given up, hold nothing back from the others
                with logged(f"closing the execution gate of model '{self.name}'", model=self.name):
                    self._gate.close()
        await on_own_thread(f"naiad-close-{self.name}", self._free)

    def _memory_usage(self) -> Sequence[MemoryUsage]:
        with logged(f"reading the memory usage of model '{self.name}' version {self.version}", model=self.name):
            return tuple(getattr(self._model, "memory_usage", tuple)())
        return ()

    def _free(self) -> None:
        """Close the model, on a thread of its own: one that hangs holds up no other, SystemExit ends no event loop."""
        with logged(f"closing model '{self.name}' version {self.version}", model=self.name):
            self._model.close()
        for part in self._parts:
            with logged(f"closing what a plugin keeps of model '{self.name}'", model=self.name):
                part.close()


def _warm_up(warmups: Sequence[Warmup], parts: VersionParts, instance: Instance, name: str) -> None:
    for warmup in warmups:
        warmup.warm_up(instance, name, parts)
