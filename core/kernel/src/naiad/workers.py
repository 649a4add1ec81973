"""Workers to derive others from, for a `naiad.extend.WorkerKind`: one with a thread, and the part that all share."""

import logging
import queue
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass
from typing import Generic

from naiad.backend import BackendTraits, Instance, Placement
from naiad.errors import NaiadError
from naiad.extend import ItemT, MakeWorker, WorkerHost
from naiad_config import ModelConfig

_logger = logging.getLogger("naiad.model")


class InstanceWorker(ABC, Generic[ItemT]):
    """The part that all workers share: the batches in flight. A subclass says on which thread the instance lives.

    Only the event loop's thread knows these batches, so a death cannot race with an answer.
    """

    def __init__(self, placement: Placement, host: WorkerHost[ItemT]) -> None:
        self.name = placement.name
        self.host = host
        self.loop = host.loop
        self.started: Future[Instance] = Future()
        self.ended: Future[None] = Future()
        self.in_flight: dict[ItemT, None] = {}

    @property
    def executing(self) -> Collection[ItemT]:
        """The batches that were not handed back. For the event loop's thread."""
        return self.in_flight.keys()

    def start(self) -> None:
        """Make the instance; `started` has it, or its error."""
        for future in (self.started, self.ended):
            future.set_running_or_notify_cancel()  # who stops waiting for the thread must not cancel what it sets
        self.begin()

    @abstractmethod
    def begin(self) -> None:
        """Begin to make the instance where it will execute."""

    def hand_back(self, item: ItemT) -> None:
        """The batch was executed. For any thread; costs one wake-up of the event loop."""
        try:
            self.loop.call_soon_threadsafe(self.arrived, item)
        except RuntimeError:  # the loop was closed before this worker ended
            _logger.debug("instance '%s' ended after its event loop", self.name)

    def arrived(self, item: ItemT) -> None:
        """An executed batch is back on the event loop's thread."""
        if item in self.in_flight:  # else it was lost with the instance
            del self.in_flight[item]
            self.host.done(item)

    def fail_in_flight(self, reason: str) -> None:
        """The instance has died with all batches in flight. For the event loop's thread."""
        lost = tuple(self.in_flight)
        self.in_flight.clear()
        self.host.died(reason, lost)


@dataclass(frozen=True, slots=True)
class _Instruction:
    """Something to call with the instance, between two batches."""

    call: Callable[[Instance], None]


class ThreadWorker(InstanceWorker[ItemT]):
    """The thread on which an instance is made, warmed up, executed and closed."""

    def __init__(self, placement: Placement, host: WorkerHost[ItemT]) -> None:
        super().__init__(placement, host)
        self._inbox: queue.SimpleQueue[ItemT | _Instruction | None] = queue.SimpleQueue()

    def execute(self, item: ItemT) -> None:
        """Execute a batch as soon as the thread is free."""
        self.in_flight[item] = None
        self._inbox.put(item)

    def instruct(self, instruction: Callable[[Instance], None]) -> None:
        """Call that with the instance, on its thread, after the batches before. For any thread."""
        self._inbox.put(_Instruction(instruction))

    def stop(self) -> None:
        """Close the instance after the batches before."""
        self._inbox.put(None)

    def begin(self) -> None:
        """Start the thread, which makes the instance."""
        threading.Thread(target=self._run, name=f"naiad-{self.name}", daemon=True).start()

    def _run(self) -> None:
        try:
            self._run_instance()
        finally:
            self.ended.set_result(None)

    def _run_instance(self) -> None:
        host = self.host
        try:
            instance = host.make_instance()
        except NaiadError as error:
            self.started.set_exception(error)
            return
        self.started.set_result(instance)
        try:
            while (item := self._inbox.get()) is not None:
                if isinstance(item, _Instruction):
                    item.call(instance)
                else:
                    host.execute(instance, item, self.hand_back)
                del item  # an idle worker must not keep a batch's tensors alive
        except BaseException as error:  # noqa: BLE001 - a model that wants to end the process only loses its instance
            reason = host.report_death(error)
            with suppress(RuntimeError):  # the loop was closed before this worker ended
                self.loop.call_soon_threadsafe(self.fail_in_flight, reason)
        host.close_instance(instance)


class ThreadKind:
    """Each instance on a thread of its own: the kernel's `WorkerKind`, for models that no other kind takes."""

    name = choice = "thread"

    def worker_for(self, config: ModelConfig, traits: BackendTraits, execute_on: str) -> MakeWorker | None:
        """See `WorkerKind`."""
        return ThreadWorker if execute_on in ("", self.choice) else None
