"""The instances of one model version: starts them, and replaces those whose worker dies."""

import asyncio
import inspect
import logging
from collections.abc import Callable, Sequence
from time import monotonic

from naiad._engine.execution import LONGEST_RETRY, Execution, ManagedInstance, ReadAnswer, close_quietly
from naiad._engine.queue import ModelQueue
from naiad._engine.readiness import ASYNC_READY, PATIENCE
from naiad.backend import Instance, Model, Placement
from naiad.errors import InvalidArgumentError, ModelFailedError, ModelNotReadyError, NaiadError
from naiad.extend import MakeWorker, Worker
from naiad.foreign_errors import contained
from naiad_tensors.devices import Device

_logger = logging.getLogger("naiad.model")

_FIRST_RETRY = 0.1
"""Seconds between two tries to replace an instance: doubled after each setback, so that a broken one costs little."""


class Instances:
    """All instances of one version. Every method runs on the event loop's thread.

    A slot is what a scheduler takes for an instance; one that takes several batches at once has several slots, a
    passive one has none. `workers` has what takes the batches of each slot. `warm_up(instance, name)` is called before
    an instance serves. `hopeful` says that batches of the queue may wait for at least one instance.
    """

    def __init__(
        self,
        model: Model,
        warm_up: Callable[[Instance, str], None],
        placements: Sequence[Placement],
        read: ReadAnswer,
        make_worker: MakeWorker,
        queue: ModelQueue,
    ) -> None:
        make = self._make_instance
        self.all = tuple(
            ManagedInstance(each, make, queue.responses, read, queue.done, self._worker_died) for each in placements
        )
        self.workers: list[Callable[[Execution], None]] = []
        self.hopeful = False
        self._make_worker = make_worker
        self._model = model
        self._warm_up = warm_up
        self._queue = queue
        self._by_slot: list[ManagedInstance] = []
        self._replacing: set[asyncio.Task[None]] = set()
        self._serves = False

    def executing(self) -> list[Execution]:
        """The batches that are executed at this moment."""
        return [each for managed in self.all if managed.worker is not None for each in managed.worker.executing]

    @property
    def placements(self) -> list[Placement]:
        """Where the instance of each slot lives."""
        return [managed.placement for managed in self._by_slot]

    @property
    def devices(self) -> list[int]:
        """The GPU of each slot, -1 for those that are on none."""
        return [managed.gpu for managed in self._by_slot]

    @property
    def input_devices(self) -> frozenset[Device]:
        """The devices whose tensors at least one of them takes as inputs; another one brings them to the host."""
        taken = (getattr(managed.instance, "input_devices", ()) for managed in self.all)
        return frozenset(device for devices in taken for device in devices)

    async def start(self, in_parallel: bool) -> None:
        """Make every instance, and give them their slots; `serve` is next.

        Raises the first failure, when none is being made any more; `close` ends the others.
        """
        waits: list[asyncio.Future[Instance]] = []
        try:
            for managed in self.all:
                waits.append(asyncio.wrap_future(self._start_worker(managed).started))
                if not in_parallel:
                    await waits[-1]
            await asyncio.gather(*waits, return_exceptions=True)
        finally:
            for wait in waits:
                wait.cancel()
        for managed, instance in zip(self.all, [wait.result() for wait in waits], strict=True):
            if managed.state == "DEAD":
                raise ModelFailedError(f"instance '{managed.name}' ended during the load: {managed.reason}")
            managed.instance = instance
            self._add_slots(managed, instance)

    def serve(self) -> None:
        """Let every instance execute from now on, and replace those that die."""
        self._serves = True
        for managed in self.all:
            if managed.instance is not None:
                self._go_live(managed, managed.instance)

    def why_none_lives(self) -> str:
        """Why requests cannot be executed; meant for when no instance is `hopeful`."""
        reasons = [instance.reason for instance in self.all if instance.reason]
        return "it has no live instance" + (f": {'; '.join(reasons)}" if reasons else "")

    def reasons_against(self) -> list[str]:
        """For each instance but passive ones, why it cannot serve; "" for those that can."""
        active = [managed for managed in self.all if not managed.placement.group.passive]
        for managed in active:
            if managed.ready_check is not None:
                managed.ready_check.begin()  # all of them at the same time
        until = monotonic() + PATIENCE
        return [managed.not_ready_because(until) for managed in active]

    def instruct(self, slot: int, member: str, instruction: Callable[[Instance], None]) -> None:
        """Call that with the instance of the slot, on its own thread, after the batches before.

        Nothing happens where the instance lacks that member, or is gone.
        """
        managed = self._by_slot[slot]
        if managed.worker is not None and hasattr(managed.instance, member):
            managed.worker.instruct(instruction)

    async def close(self) -> None:
        """End all workers after their batches, however long that takes."""
        self._serves = False
        for task in self._replacing:
            task.cancel()
        workers = [managed.worker for managed in self.all if managed.worker is not None]
        for worker in workers:
            worker.stop()
        await asyncio.gather(*(asyncio.wrap_future(worker.ended) for worker in workers))

    def _start_worker(self, managed: ManagedInstance) -> Worker[Execution]:
        with contained(f"starting the worker of instance '{managed.name}'"):
            worker = self._make_worker(managed.placement, managed)
            worker.start()
        managed.worker = worker  # only now: `close` waits for its end, and one without a thread never ends
        return worker

    def _make_instance(self, placement: Placement) -> Instance:
        instance = self._model.instantiate(placement)
        try:
            _check_members(instance, placement.name)
            self._warm_up(instance, placement.name)
        except BaseException:
            close_quietly(instance, placement.name)
            raise
        return instance

    def _add_slots(self, managed: ManagedInstance, instance: Instance) -> None:
        first = len(self._by_slot)
        if not managed.placement.group.passive and managed.worker is not None:
            count = max(1, int(getattr(instance, "concurrency", 1)))
            self._by_slot.extend([managed] * count)
            self.workers.extend([managed.worker.execute] * count)
        managed.slots = tuple(range(first, len(self._by_slot)))

    def _go_live(self, managed: ManagedInstance, instance: Instance) -> None:
        managed.goes_live(instance)
        self._judge()
        for slot in managed.slots:
            self._queue.free(slot)

    def _worker_died(self, managed: ManagedInstance, lost: Sequence[Execution]) -> None:
        for slot in managed.slots:
            self._queue.lose(slot)
        self._judge()
        for execution in lost:
            self._queue.lost(execution)
        self._fail_hopeless()
        if self._serves:
            task = asyncio.get_running_loop().create_task(self._replace(managed))
            self._replacing.add(task)
            task.add_done_callback(self._replacing.discard)

    async def _replace(self, managed: ManagedInstance) -> None:
        while True:
            await asyncio.sleep(_delay(managed.setbacks))
            try:
                worker = self._start_worker(managed)
                instance = await asyncio.wrap_future(worker.started)
            except NaiadError as error:
                managed.setbacks += 1
                managed.reason = f"its worker died and a new one failed to start ({error})"
                _logger.error("instance '%s': %s; trying again", managed.name, managed.reason)
                self._judge()
                self._fail_hopeless()
                continue
            _logger.warning("instance '%s' has a new worker", managed.name)
            for slot in managed.slots:
                self.workers[slot] = worker.execute
            self._go_live(managed, instance)
            return

    def _judge(self) -> None:
        self.hopeful = any(managed.is_hopeful() for managed in self.all)

    def _fail_hopeless(self) -> None:
        """Fail what waits for an instance where none is likely to come soon."""
        if not self.hopeful:
            model = self._queue.responses.model
            self._queue.fail_all(ModelNotReadyError(f"model '{model}': {self.why_none_lives()}", retry_after=1.0))


def _check_members(instance: Instance, name: str) -> None:
    """Read what the event loop will read, while whatever that raises fails the load alone."""
    int(getattr(instance, "concurrency", 1))
    list(getattr(instance, "input_devices", ()))
    hasattr(instance, "sequence_ended")
    if inspect.iscoroutinefunction(getattr(instance, "ready", None)):  # it could never answer
        raise InvalidArgumentError(f"instance '{name}': {ASYNC_READY}")


def _delay(setbacks: int) -> float:
    """Seconds to wait before the next try: none at first."""
    return 0.0 if setbacks < 2 else min(_FIRST_RETRY * 2.0 ** min(setbacks - 2, 20), LONGEST_RETRY)
