"""The instances of one model version: started, counted among the live, and replaced when their worker dies."""

import asyncio
import logging
from collections.abc import Callable, Sequence
from time import monotonic_ns

from naiad._kernel.answers import AnswerReader
from naiad._kernel.worker import Work, Worker
from naiad.backend import Instance, Placement
from naiad.reports import InstanceReport

_logger = logging.getLogger("naiad.model")

_FIRST_RETRY = 0.1
_LONGEST_RETRY = 30.0
"""Seconds between two tries to replace an instance: doubled after each failure, so that a broken one costs little."""


class InstanceSlot:
    """The place of one instance: the instance in it may die and be replaced."""

    __slots__ = ("deaths", "instance", "placement", "places", "reason", "state", "worker")

    def __init__(self, placement: Placement) -> None:
        self.placement = placement
        self.places: tuple[int, ...] = ()
        self.worker: Worker | None = None
        self.instance: Instance | None = None
        self.state = "STARTING"
        self.reason = ""
        self.deaths = 0

    def not_ready_because(self) -> str:
        """Why this instance cannot serve; "" when it can."""
        if self.state != "READY":
            return f"instance '{self.placement.name}' is {self.state}: {self.reason or 'it is being made'}"
        ready = getattr(self.instance, "ready", None)
        if ready is None:
            return ""
        try:
            reason = ready()
        except Exception as error:  # noqa: BLE001 - the instance's own code; whatever it raises is the reason
            reason = f"{type(error).__name__}: {error}"
        return f"instance '{self.placement.name}' is not ready: {reason}" if reason else ""

    def report(self) -> InstanceReport:
        """The slot as it stands."""
        since = self.worker.busy_since_ns if self.worker is not None else 0
        busy = (monotonic_ns() - since) / 1e9 if since else 0.0
        return InstanceReport(self.placement.name, self.state, self.reason, busy)


class Instances:
    """All instances of one version. Every method runs on the event loop's thread.

    A place is what a scheduler takes for an instance; one that takes several batches at once has several places.
    """

    def __init__(
        self,
        make: Callable[[Placement], Instance],
        placements: Sequence[Placement],
        reader: AnswerReader,
        on_done: Callable[[Work], None],
    ) -> None:
        self.slots = tuple(InstanceSlot(placement) for placement in placements)
        self.on_free: Callable[[int], None] = lambda place: None
        self.on_lost: Callable[[Sequence[int], Sequence[Work]], None] = lambda places, works: None
        self._make = make
        self._reader = reader
        self._on_done = on_done
        self._loop = asyncio.get_running_loop()
        self._by_place: list[InstanceSlot] = []
        self._replacing: set[asyncio.Task[None]] = set()
        self._closed = False

    @property
    def place_count(self) -> int:
        """How many batches can be executed at once."""
        return len(self._by_place)

    def live(self) -> bool:
        """Whether at least one instance has a worker that takes batches."""
        return any(slot.state == "READY" for slot in self.slots)

    async def start(self, in_parallel: bool) -> None:
        """Make every instance; the first failure is raised after all were given up."""
        waits = []
        for slot in self.slots:
            wait = asyncio.wrap_future(self._start_worker(slot).started)
            waits.append(wait)
            if not in_parallel:
                await asyncio.wait([wait])
        if waits:
            await asyncio.wait(waits)
        failures = [error for wait in waits if (error := wait.exception()) is not None]
        if failures:
            await self.close()
            raise failures[0]
        for slot, instance in zip(self.slots, (wait.result() for wait in waits), strict=True):
            slot.places = self._new_places(slot, instance)
            self._go_live(slot, instance)

    def send(self, work: Work) -> None:
        """Give a batch to the instance that its place belongs to."""
        worker = self._by_place[work.place].worker
        if worker is None:
            raise RuntimeError(f"place {work.place} has no worker")
        worker.execute(work)

    async def close(self, grace: float | None = None) -> bool:
        """End all workers; whether they ended within `grace` seconds (None: however long it takes)."""
        self._closed = True
        for task in self._replacing:
            task.cancel()
        workers = [slot.worker for slot in self.slots if slot.worker is not None]
        for worker in workers:
            worker.stop()
        ended = await asyncio.gather(*(asyncio.to_thread(worker.join, grace) for worker in workers))
        return all(ended)

    def _start_worker(self, slot: InstanceSlot) -> Worker:
        placement = slot.placement
        worker = Worker(
            placement.name, lambda: self._make(placement), self._reader, self._loop, self._on_done, self._worker_died
        )
        slot.worker = worker
        worker.start()
        return worker

    def _new_places(self, slot: InstanceSlot, instance: Instance) -> tuple[int, ...]:
        first = len(self._by_place)
        self._by_place.extend([slot] * max(1, int(getattr(instance, "concurrency", 1))))
        return tuple(range(first, len(self._by_place)))

    def _go_live(self, slot: InstanceSlot, instance: Instance) -> None:
        slot.instance, slot.state, slot.reason = instance, "READY", ""
        for place in slot.places:
            self.on_free(place)

    def _worker_died(self, worker: Worker, reason: str, works: Sequence[Work]) -> None:
        slot = next((slot for slot in self.slots if slot.worker is worker), None)
        if slot is None or self._closed:
            return
        slot.instance, slot.state = None, "DEAD"
        slot.reason = f"its worker died ({reason}) and is being replaced"
        slot.deaths += 1
        self.on_lost(slot.places, works)
        task = self._loop.create_task(self._replace(slot))
        self._replacing.add(task)
        task.add_done_callback(self._replacing.discard)

    async def _replace(self, slot: InstanceSlot) -> None:
        failures = 0
        while True:
            delay = min(_FIRST_RETRY * 2 ** (slot.deaths - 1 + failures), _LONGEST_RETRY)
            await asyncio.sleep(delay if failures or slot.deaths > 1 else 0)
            worker = self._start_worker(slot)
            try:
                instance = await asyncio.wrap_future(worker.started)
            except Exception as error:  # noqa: BLE001 - making an instance runs the backend's code
                failures += 1
                slot.reason = f"its worker died and a new one failed to start ({type(error).__name__}: {error})"
                _logger.error("instance '%s': %s; trying again", slot.placement.name, slot.reason)
                continue
            _logger.warning("instance '%s' has a new worker", slot.placement.name)
            self._go_live(slot, instance)
            return
