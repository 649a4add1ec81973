"""The instances of one model version: started, counted among the live, and replaced when their worker dies."""

import asyncio
import functools
import logging
from collections.abc import Callable, Sequence
from time import monotonic, monotonic_ns

from naiad._kernel.answers import AnswerReader, CodedReader
from naiad._kernel.readiness import PATIENCE, ReadyCheck, ready_check_of, refuse_async_ready
from naiad._kernel.worker import ExecutionHost, Work, close_quietly
from naiad.backend import Instance, Placement
from naiad.devices import Device
from naiad.errors import NaiadError
from naiad.extend import MakeWorker, Worker
from naiad.reports import InstanceReport

_logger = logging.getLogger("naiad.model")

_FIRST_RETRY = 0.1
_LONGEST_RETRY = 30.0
"""Seconds between two tries to replace an instance: doubled after each setback, so that a broken one costs little.

One that served for the longest of these times has proved itself: its next death counts as the first.
"""


class InstanceSlot:
    """The place of one instance: the instance in it may die and be replaced.

    `setbacks` are the deaths and failed replacements in a row, `live_since` (`time.monotonic`) is when it was ready.
    """

    __slots__ = (
        "instance",
        "live_since",
        "placement",
        "places",
        "ready_check",
        "reason",
        "setbacks",
        "state",
        "worker",
    )

    def __init__(self, placement: Placement) -> None:
        self.placement = placement
        self.places: tuple[int, ...] = ()
        self.worker: Worker[Work] | None = None
        self.instance: Instance | None = None
        self.ready_check: ReadyCheck | None = None
        self.state = "STARTING"
        self.reason = ""
        self.setbacks = 0
        self.live_since = 0.0

    def is_hopeful(self) -> bool:
        """Whether batches may wait for this instance: it takes them, or died only just now and is being replaced."""
        return bool(self.places) and (self.state == "READY" or self.setbacks == 1)

    def not_ready_because(self, until: float) -> str:
        """Why this instance cannot serve; "" when it can. Waits until then (`time.monotonic`) for its own answer."""
        if self.state != "READY":
            return f"instance '{self.placement.name}' is {self.state}: {self.reason or 'it is being made'}"
        reason = "" if self.ready_check is None else self.ready_check.reason(until)
        return f"instance '{self.placement.name}' is not ready: {reason}" if reason else ""

    @property
    def gpu(self) -> int:
        """The number of its GPU, -1 when it is on none."""
        return self.placement.device if self.placement.kind == "GPU" else -1

    def report(self) -> InstanceReport:
        """The slot as it stands."""
        since = self.worker.busy_since_ns if self.worker is not None else 0
        busy = (monotonic_ns() - since) / 1e9 if since else 0.0
        return InstanceReport(self.placement.name, self.state, self.reason, busy, self.gpu)


class Instances:
    """All instances of one version. Every method runs on the event loop's thread.

    A place is what a scheduler takes for an instance; one that takes several batches at once has several places, a
    passive one has none. `on_free(place)` says that an instance is there for it, `on_done(work)` that it has executed a
    batch, `on_lost(places, works)` that these are gone; with none of them, that a replacement failed.
    """

    def __init__(
        self,
        make: Callable[[Placement], Instance],
        placements: Sequence[Placement],
        reader: AnswerReader | CodedReader,
        make_worker: MakeWorker,
        on_free: Callable[[int], None],
        on_done: Callable[[Work], None],
        on_lost: Callable[[Sequence[int], Sequence[Work]], None],
    ) -> None:
        self._make_worker = make_worker
        self.slots = tuple(InstanceSlot(placement) for placement in placements)
        self._make = make
        self._reader = reader
        self._on_free = on_free
        self._on_done = on_done
        self._on_lost = on_lost
        self._loop = asyncio.get_running_loop()
        self._by_place: list[InstanceSlot] = []
        self._replacing: set[asyncio.Task[None]] = set()
        self._closed = False
        self.hopeful = False
        """Whether batches may wait for at least one instance; otherwise nobody would take them for long."""

    @property
    def place_count(self) -> int:
        """How many batches can be executed at once."""
        return len(self._by_place)

    def executing(self) -> list[Work]:
        """The batches that are executed at this moment."""
        return [work for slot in self.slots if slot.worker is not None for work in slot.worker.executing]

    @property
    def placements(self) -> list[Placement]:
        """Where the instance of each place lives."""
        return [slot.placement for slot in self._by_place]

    @property
    def devices(self) -> list[int]:
        """The GPU of each place, -1 for those that are on none."""
        return [slot.gpu for slot in self._by_place]

    @property
    def input_devices(self) -> frozenset[Device]:
        """The devices whose tensors at least one of them takes as inputs; another one brings them to the host."""
        found = (getattr(slot.instance, "input_devices", ()) for slot in self.slots)
        return frozenset(device for devices in found for device in devices)

    async def start(self, in_parallel: bool) -> None:
        """Make every instance. Raises the first failure, when none is being made any more; `close` ends the others."""
        waits: list[asyncio.Future[Instance]] = []
        try:
            for slot in self.slots:
                waits.append(asyncio.wrap_future(self._start_worker(slot).started))
                if not in_parallel:
                    await waits[-1]
            await asyncio.gather(*waits, return_exceptions=True)
        finally:
            for wait in waits:
                wait.cancel()
        instances = [wait.result() for wait in waits]
        for slot, instance in zip(self.slots, instances, strict=True):
            slot.places = self._new_places(slot, instance)
            self._go_live(slot, instance)

    def send(self, work: Work) -> None:
        """Give a batch to the instance that its place belongs to."""
        worker = self._by_place[work.place].worker
        if worker is None:
            raise RuntimeError(f"place {work.place} has no worker")
        worker.execute(work)

    def reasons_against(self) -> list[str]:
        """For each instance but passive ones, why it cannot serve; "" for those that can."""
        slots = [slot for slot in self.slots if not slot.placement.group.passive]
        for slot in slots:
            if slot.ready_check is not None:
                slot.ready_check.begin()  # all of them at the same time
        until = monotonic() + PATIENCE
        return [slot.not_ready_because(until) for slot in slots]

    def instruct(self, place: int, member: str, instruction: Callable[[Instance], None]) -> None:
        """Call that with the instance of that place, on its own thread, after the batches that it was given before.

        Nothing happens where the instance lacks that member, or is gone.
        """
        slot = self._by_place[place]
        if slot.worker is not None and hasattr(slot.instance, member):
            slot.worker.instruct(instruction)

    async def close(self) -> None:
        """End all workers after what they were given; however long it takes."""
        self._closed = True
        for task in self._replacing:
            task.cancel()
        workers = [slot.worker for slot in self.slots if slot.worker is not None]
        for worker in workers:
            worker.stop()
        waits = [asyncio.wrap_future(worker.ended) for worker in workers]
        try:
            await asyncio.gather(*waits)
        finally:
            for wait in waits:
                wait.cancel()

    def _start_worker(self, slot: InstanceSlot) -> Worker[Work]:
        placement = slot.placement
        host = ExecutionHost(
            placement.name,
            functools.partial(self._make_instance, placement),
            self._reader,
            self._loop,
            self._on_done,
            functools.partial(self._worker_died, slot),
        )
        worker = slot.worker = self._make_worker(placement, host)
        worker.start()
        return worker

    def _make_instance(self, placement: Placement) -> Instance:
        instance = self._make(placement)
        try:
            _check_members(instance)
            refuse_async_ready(instance, placement.name)
        except BaseException:
            close_quietly(instance, placement.name)
            raise
        return instance

    def _new_places(self, slot: InstanceSlot, instance: Instance) -> tuple[int, ...]:
        first = len(self._by_place)
        if not slot.placement.group.passive:
            self._by_place.extend([slot] * max(1, int(getattr(instance, "concurrency", 1))))
        return tuple(range(first, len(self._by_place)))

    def _go_live(self, slot: InstanceSlot, instance: Instance) -> None:
        slot.instance, slot.state, slot.reason, slot.live_since = instance, "READY", "", monotonic()
        slot.ready_check = ready_check_of(instance)
        self._judge()
        for place in slot.places:
            self._on_free(place)

    def _worker_died(self, slot: InstanceSlot, reason: str, works: Sequence[Work]) -> None:
        proved = monotonic() - slot.live_since > _LONGEST_RETRY
        slot.setbacks = 1 if proved else slot.setbacks + 1
        slot.instance, slot.state, slot.ready_check = None, "DEAD", None
        slot.reason = f"its worker died ({reason}) and is being replaced"
        self._judge()
        self._on_lost(slot.places, works)
        if self._closed:
            return
        task = self._loop.create_task(self._replace(slot))
        self._replacing.add(task)
        task.add_done_callback(self._replacing.discard)

    async def _replace(self, slot: InstanceSlot) -> None:
        while True:
            await asyncio.sleep(_delay(slot.setbacks))
            worker = self._start_worker(slot)
            try:
                instance = await asyncio.wrap_future(worker.started)
            except NaiadError as error:
                slot.setbacks += 1
                slot.reason = f"its worker died and a new one failed to start ({error})"
                _logger.error("instance '%s': %s; trying again", slot.placement.name, slot.reason)
                self._judge()
                self._on_lost((), ())
                continue
            _logger.warning("instance '%s' has a new worker", slot.placement.name)
            self._go_live(slot, instance)
            return

    def _judge(self) -> None:
        self.hopeful = any(slot.is_hopeful() for slot in self.slots)


def _check_members(instance: Instance) -> None:
    """Read what the event loop will read, while whatever that raises fails the load alone."""
    int(getattr(instance, "concurrency", 1))
    list(getattr(instance, "input_devices", ()))
    hasattr(instance, "sequence_ended")


def _delay(setbacks: int) -> float:
    """Seconds to wait before the next try: none at first."""
    return 0.0 if setbacks < 2 else min(_FIRST_RETRY * 2.0 ** min(setbacks - 2, 20), _LONGEST_RETRY)
