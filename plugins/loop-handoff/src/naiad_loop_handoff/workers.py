"""Workers: a thread that can run the event loop too, and a thread for instances that compute in native code."""

import asyncio
import threading
from collections import deque
from collections.abc import Callable
from time import monotonic

from naiad.backend import Instance, Placement
from naiad.extend import ItemT, WorkerHost
from naiad.foreign_errors import raise_interrupt
from naiad.workers import ThreadWorker
from naiad_kit.busy_wait import AwakeLoop
from naiad_loop_handoff.candidacy import NATIVE, PYTHON, ExecutionCost
from naiad_loop_handoff.handoff import LoopHandoff, LoopToken, reclaim

_IN_A_ROW = 8
"""The most batches between two rounds of the event loop, which has to read and write as well.

One at a time cost 13 % of the requests over gRPC at 16: each round lets other threads have the interpreter.
"""

_SECONDS_AWAKE = 300e-6
"""The most to look for the next request: a client of gRPC in C++ takes 100 to 200 µs to send it."""


class RunnerWorker(ThreadWorker[ItemT]):
    """A thread of a process whose event loop is run by `handoff`."""

    def __init__(self, handoff: LoopHandoff, placement: Placement, host: WorkerHost[ItemT]) -> None:
        super().__init__(placement, host)
        self.handoff = handoff


class NativeWorker(RunnerWorker[ItemT]):
    """The thread of a model that computes outside of Python: the switch interval is short while it executes."""

    def __init__(self, handoff: LoopHandoff, placement: Placement, host: WorkerHost[ItemT]) -> None:
        super().__init__(handoff, placement, host)
        self._switch_interval = handoff.switch_interval
        self._holding: set[ItemT] = set()

    def execute(self, item: ItemT) -> None:
        """As of any worker."""
        self._holding.add(item)
        self._switch_interval.acquire()
        super().execute(item)

    def arrived(self, item: ItemT) -> None:
        """As of any worker."""
        if item in self._holding:
            self._holding.discard(item)
            self._switch_interval.release()
        super().arrived(item)

    def fail_in_flight(self, reason: str) -> None:
        """As of any worker."""
        for _ in self._holding:
            self._switch_interval.release()
        self._holding.clear()
        super().fail_in_flight(reason)


class HandoffWorker(RunnerWorker[ItemT]):
    """Executes on its own thread, as any worker; but while it leads, no thread has to be woken for that.

    The instance notices nothing: it lives on one thread, where no event loop runs while it executes.
    """

    allowed = PYTHON

    def __init__(self, handoff: LoopHandoff, placement: Placement, host: WorkerHost[ItemT]) -> None:
        super().__init__(handoff, placement, host)
        self._cost = ExecutionCost(self.allowed)
        self._awake = AwakeLoop(handoff.loop, _SECONDS_AWAKE)
        self._own: deque[ItemT] = deque()
        self._executed: list[ItemT] | None = None
        self._thread = 0
        self._has_loop = False

    def execute(self, item: ItemT) -> None:
        """Execute a batch: after this round of the event loop when this thread runs it, else when it is free."""
        handoff = self.handoff
        if self._has_loop and handoff.leader is self:  # one that is only appointed may step down before it leads
            self._awake.arrived()
            self.in_flight[item] = None
            self._own.append(item)
            handoff.interrupt()
        else:
            super().execute(item)

    def instruct(self, instruction: Callable[[Instance], None]) -> None:
        """Call that with the instance, on its thread, after the batches before."""
        self._step_down()
        super().instruct(instruction)

    def stop(self) -> None:
        """Close the instance after the batches before."""
        self._step_down()
        super().stop()

    def lead(self, token: LoopToken) -> None:
        """See `Leader`."""
        super().instruct(lambda instance: self._lead(token, instance))

    def preempted(self) -> None:
        """See `Leader`."""
        self._cost.bar(monotonic())

    def hand_back(self, item: ItemT) -> None:
        """The batch was executed: the leader takes it back itself as soon as the instance has returned."""
        executed = self._executed
        if executed is not None and threading.get_ident() == self._thread:
            executed.append(item)
        else:
            super().hand_back(item)

    def arrived(self, item: ItemT) -> None:
        """As of any worker; before the next batch is sent, find out whether to lead."""
        if item not in self.in_flight:
            return
        handoff, cost = self.handoff, self._cost
        cost.executed(item.done_ns - item.started_ns, len(item.batch.requests))
        if handoff.leader is not self or cost.is_slow or handoff.vote.is_contested:
            self._stand()
        super().arrived(item)

    def _step_down(self) -> None:
        if self.handoff.leader is self:
            self.handoff.appoint(None)

    def _stand(self) -> None:
        """Lead, or lead no more, by what the executions have cost."""
        handoff, cost = self.handoff, self._cost
        leads, now = handoff.leader is self, monotonic()
        if leads and cost.is_slow:
            cost.bar(now)
            self._step_down()
        elif not cost.may_lead(now):
            return
        elif handoff.vote.counted(self, handoff.leader) and len(self.in_flight) == 1:
            cost.appointed()
            handoff.appoint(self)

    def _lead(self, token: LoopToken, instance: Instance) -> None:
        """Have the loop until another leader is appointed, or this thread is preempted.

        Whatever is raised meanwhile, the loop goes to the main thread: no other thread could take it from here.
        """
        handoff, own = self.handoff, self._own
        self._thread = threading.get_ident()
        self._has_loop = reclaim(token)
        if self._has_loop:
            handoff.took()
        try:
            while self._has_loop and handoff.leader is self:
                if own:
                    self._execute_some(instance, token)
                if self._has_loop and handoff.leader is self:
                    handoff.run_loop(once=bool(own))
        except BaseException:
            if self._has_loop:
                handoff.leader = None
            raise
        finally:
            if self._has_loop:
                self._has_loop = False
                handoff.pass_on()
        while own:
            self.host.execute(instance, own.popleft(), self.hand_back)

    def _execute_some(self, instance: Instance, token: LoopToken) -> None:
        """Execute the batches in `_own` and those that follow, a few in a row, unless another thread takes the loop.

        No loop runs on this thread meanwhile, except while executed batches are taken back: that saves a round of it.
        """
        handoff, own, loop = self.handoff, self._own, self.loop
        for _ in range(_IN_A_ROW):
            executed: list[ItemT] = []
            self._executed = executed
            handoff.guard(self, token)
            try:
                self.host.execute(instance, own.popleft(), self.hand_back)
            finally:
                self._executed = None
                self._has_loop = reclaim(token)
            if not self._has_loop:
                for item in executed:
                    self.hand_back(item)
                return
            asyncio._set_running_loop(loop)
            try:
                for item in executed:
                    self._take_back(item)
                if len(executed) == 1 and not self.in_flight and len(executed[0].batch.requests) == 1:
                    self._awake.responded()
            finally:
                asyncio._set_running_loop(None)
            if not own or handoff.leader is not self:
                return

    def _take_back(self, item: ItemT) -> None:
        try:
            self.arrived(item)
        except BaseException as error:  # noqa: BLE001 - as `LoopHandoff` does with what a callback of the loop raises
            raise_interrupt(error)
            message = f"taking back a batch of instance '{self.name}' failed"
            self.loop.call_exception_handler({"message": message, "exception": error})


class NativeHandoffWorker(HandoffWorker[ItemT], NativeWorker[ItemT]):
    """The same for models that compute outside of Python."""

    allowed = NATIVE
