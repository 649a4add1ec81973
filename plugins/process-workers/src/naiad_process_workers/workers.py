"""The worker of an instance in a process: the event loop itself writes batches to the process and reads its answers.

A client that sends small requests one at a time finds the server and the process awake: the event loop looks for the
answer and then for the next request, the process for the next batch, since to wake one that sleeps may take longer than
the model does. With several requests in flight, or large ones, both have work, and looking would only take a processor
from it.
"""

import logging
import os
import queue
import threading
from asyncio import TimerHandle
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from math import inf
from time import perf_counter

from naiad.backend import Batch, Instance, Placement
from naiad.errors import NaiadError
from naiad.extend import ItemT, WorkerHost
from naiad.threads import on_event_loop
from naiad.workers import InstanceWorker
from naiad_kit.busy_wait import AwakeLoop, BusyWait
from naiad_process_workers.frames import Frame, LinkClosedError, broken
from naiad_process_workers.instance import ProcessInstance
from naiad_process_workers.large_blocks import LargeBlocks
from naiad_process_workers.messages import Kind
from naiad_process_workers.services import MOST_BYTES_ON_LOOP, cost_of
from naiad_tensors.laid_out import LaidOutInputs

_logger = logging.getLogger("naiad.model")

_FEW_BYTES = 64 << 10
"""Requests with larger tensors take longer than it takes to wake a process."""

_SECONDS_FOR_ANSWERS = 300e-6
"""The most to wait busily for the answer to a request that came alone."""

_SECONDS_FOR_REQUESTS = 400e-6
"""The most to wait busily for the next request after that."""


class ProcessWorker(InstanceWorker[ItemT]):
    """Makes and closes its instance on a thread of its own, which also copies large batches; the loop does the rest."""

    def __init__(self, placement: Placement, host: WorkerHost[ItemT]) -> None:
        super().__init__(placement, host)
        self._inbox: queue.SimpleQueue[ItemT | Callable[[], None] | None] = queue.SimpleQueue()
        self._instance: ProcessInstance | None = None
        self._queued = 0
        self._responses = 0  # in the inbox: responses with many strings, and all frames after them
        self._is_reading = self._is_over = self._is_stopping = False
        self._limits: dict[ItemT, TimerHandle] = {}
        self._awake = AwakeLoop(self.loop, _SECONDS_FOR_REQUESTS)
        self._busy_wait = BusyWait(_SECONDS_FOR_ANSWERS)
        self._since = 0.0
        self._is_looking = False
        self._is_alone = False  # the latest batch is a small request that came while nothing was in flight
        self._is_idle = True  # nothing has been sent since the last batch in flight was answered

    def begin(self) -> None:
        """Start the thread, which makes the instance."""
        threading.Thread(target=self._run, name=f"naiad-process-{self.name}", daemon=True).start()

    def execute(self, item: ItemT) -> None:
        """Send a batch to the process, after the ones before."""
        self._awake.arrived()
        size = _size_of(item.batch)
        alone = self._is_idle and not self._queued and size <= _FEW_BYTES and len(item.batch.requests) == 1
        self._is_idle = False
        self.in_flight[item] = None
        instance = self._instance
        if instance is None or self._is_over:
            return  # its end is on the way
        limit = instance.process.limits.execution
        if limit:
            self._limits[item] = self.loop.call_later(limit, instance.process.kill_overdue)
        self._is_alone = alone
        instance.comes_alone(alone)
        if self._queued or size > MOST_BYTES_ON_LOOP:
            self._queued += 1
            self._inbox.put(item)
        else:
            self.host.execute(instance, item, self.hand_back)
            if alone:
                self._look_from_now()

    def instruct(self, instruction: Callable[[Instance], None]) -> None:
        """Call that with the instance, after the batches before."""
        instance = self._instance
        if instance is None or self._is_over:
            return
        if self._queued:
            self._inbox.put(lambda: instruction(instance))
        else:
            instruction(instance)

    def stop(self) -> None:
        """Close the instance after the batches before."""
        self._is_stopping = True
        if not self.in_flight or self._is_over:
            self._inbox.put(None)

    def hand_back(self, item: ItemT) -> None:
        """The batch was executed: take it back at once where that comes from the process."""
        if self._is_reading and on_event_loop(self.loop):
            self.arrived(item)
        else:
            super().hand_back(item)

    def arrived(self, item: ItemT) -> None:
        """As of any worker; the last batch of a worker that stops closes the instance."""
        timer = self._limits.pop(item, None)
        if timer is not None:
            timer.cancel()
        if self._since:
            self._busy_wait.ended(perf_counter() - self._since)
            self._since = 0.0
        super().arrived(item)
        if self.in_flight:
            return
        self._is_idle = True
        if self._is_alone:
            self._awake.responded()
        if self._is_stopping and not self._is_over:
            self._inbox.put(None)

    def _run(self) -> None:
        host = self.host
        try:
            instance = host.make_instance()
        except NaiadError as error:
            self.started.set_exception(error)
            self.ended.set_result(None)
            return
        try:
            assert isinstance(instance, ProcessInstance)  # noqa: S101 - this kind of worker made its model
            self.loop.call_soon_threadsafe(self._attach, instance)
            while (item := self._inbox.get()) is not None:
                if callable(item):
                    item()
                else:
                    host.execute(instance, item, self.hand_back)
                    self.loop.call_soon_threadsafe(self._dequeued)
                del item  # a worker that waits must not keep a batch's tensors alive
            self._end(instance)
        except RuntimeError:  # the loop was closed before this worker ended
            _logger.debug("instance '%s' ended after its event loop", self.name)
            host.close_instance(instance)
        finally:
            self.ended.set_result(None)

    def _end(self, instance: ProcessInstance) -> None:
        """Close an instance, or find out why its process has ended."""
        detached = threading.Event()
        self.loop.call_soon_threadsafe(self._detach, instance, detached)
        detached.wait()
        if self._is_over:
            reason = instance.process.end(self._error)
            self.loop.call_soon_threadsafe(self._died, instance, reason)
        else:
            self._is_over = True
            self.host.close_instance(instance)

    _error: Exception | None = None

    def _attach(self, instance: ProcessInstance) -> None:
        self._instance = instance
        instance.attach()
        work = instance.work
        work.socket.setblocking(False)
        work.write_later(self._blocked)
        read = work.memory.read
        read.report_large(LargeBlocks(read.freed, self.loop, partial(self._give_back, instance)))
        self.loop.add_reader(work.fileno(), self._read, instance)
        self.started.set_result(instance)

    def _detach(self, instance: ProcessInstance, detached: threading.Event) -> None:
        work = instance.work
        with suppress(OSError, ValueError):
            self.loop.remove_reader(work.fileno())
            self.loop.remove_writer(work.fileno())
            work.socket.setblocking(True)
        detached.set()

    def _dequeued(self, in_order: bool = False) -> None:
        self._queued -= 1
        self._responses -= in_order

    def _read(self, instance: ProcessInstance) -> None:
        """Take what the process has sent."""
        self._is_reading = True
        try:
            for frame in instance.work.receive():
                in_order = frame.kind == Kind.STRING_RESPONSE or self._responses > 0
                if in_order or frame.kind == Kind.STRINGS:
                    self._queued += 1
                    self._responses += in_order
                    self._inbox.put(partial(self._take_strings, instance, frame, in_order))
                else:
                    instance.take(frame)
        except Exception as error:  # noqa: BLE001 - what a process sends may be anything
            self._lose(instance, broken(error))
        finally:
            self._is_reading = False

    def _look_from_now(self) -> None:
        """Look for an answer in each round of the loop, which does not sleep meanwhile, where that pays."""
        self._since = perf_counter()
        if self._busy_wait.pays and not self._is_looking:
            self._is_looking = True
            self.loop.call_soon(self._look)

    def _look(self) -> None:
        instance = self._instance
        self._is_looking = False
        if not self.in_flight or instance is None or self._is_over:
            return
        self._read(instance)
        if self.in_flight and perf_counter() < self._since + self._busy_wait.seconds and not self._is_over:
            self._is_looking = True
            os.sched_yield()  # the process may have to share this processor
            self.loop.call_soon(self._look)

    def _take_strings(self, instance: ProcessInstance, frame: Frame, in_order: bool) -> None:
        """Take an answer or a response with many strings, or what follows such a response, on the thread."""
        try:
            instance.take(frame)
        except Exception as error:  # noqa: BLE001 - what a process sends may be anything
            self.loop.call_soon_threadsafe(self._lose, instance, broken(error))
        self.loop.call_soon_threadsafe(self._dequeued, in_order)

    def _lose(self, instance: ProcessInstance, error: Exception) -> None:
        """The process has ended, or is of no more use: the thread finds out why."""
        if not self._is_over:
            self._is_over, self._error = True, error
            self.loop.remove_reader(instance.work.fileno())
            self._inbox.put(None)

    def _died(self, instance: ProcessInstance, reason: str) -> None:
        _logger.error("the process of instance '%s' ended: %s", self.name, reason)
        for timer in self._limits.values():
            timer.cancel()
        self._limits.clear()
        self.fail_in_flight(reason)
        instance.lost(reason)

    def _blocked(self) -> None:
        """The socket takes no more; write when it does. For any thread."""
        self.loop.call_soon_threadsafe(self._write_later)

    def _write_later(self) -> None:
        if self._instance is not None and not self._is_over:
            self.loop.add_writer(self._instance.work.fileno(), self._write, self._instance)

    def _give_back(self, instance: ProcessInstance) -> None:
        """Large blocks of the process are free; those of one that ends go with it."""
        if not self._is_over:
            self._write(instance)

    def _write(self, instance: ProcessInstance) -> None:
        work = instance.work
        try:
            if work.flush():
                self.loop.remove_writer(work.fileno())
        except LinkClosedError as error:
            self.loop.remove_writer(work.fileno())
            self._lose(instance, error)


def _size_of(batch: Batch) -> float:
    """The bytes of its tensors; infinitely many for one that takes long whatever its size."""
    size = 0
    for request in batch.requests:
        if request.transfer is not None:
            return inf
        if type(request.inputs) is LaidOutInputs and request.inputs.layout.fields:
            size += request.inputs.layout.nbytes
            continue
        size += cost_of(request.inputs.values())
    return size
