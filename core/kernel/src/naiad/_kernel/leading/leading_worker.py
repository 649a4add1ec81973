"""A worker whose thread runs the event loop while its instance is asked most and answers quickly."""

import asyncio
import functools
import threading
from collections import deque
from collections.abc import Callable
from time import monotonic
from typing import Any

from naiad._kernel.leading.candidacy import NATIVE_NANOSECONDS, PYTHON_NANOSECONDS, Briskness
from naiad._kernel.leading.relay import Mark, Relay, end
from naiad._kernel.native_worker import NativeWorker
from naiad._kernel.worker import Work, Worker
from naiad.backend import Instance
from naiad.foreign_errors import raise_interrupt

_IN_A_ROW = 8
"""So many batches at most between two rounds of the event loop, which has to read and write as well.

One at a time cost 13 % of the requests over gRPC at 16: each round lets other threads have the interpreter.
"""

_Told = tuple[Callable[..., None], tuple[object, ...]]


class LeadingWorker(Worker):
    """Executes on its own thread, as any worker; but while it leads, nobody has to be woken for that.

    The instance notices nothing: it lives on one thread, where no event loop runs while it executes.
    """

    allowed_ns = PYTHON_NANOSECONDS

    def __init__(self, relay: Relay, *arguments: Any) -> None:
        super().__init__(*arguments)
        self._relay = relay
        self._briskness = Briskness(self.allowed_ns)
        self._own: deque[Work] = deque()
        self._told: list[_Told] | None = None
        self._thread = 0
        self._has_loop = False

    def execute(self, work: Work) -> None:
        """Run a batch: after this round of the event loop when this thread runs it, else when it is free."""
        relay = self._relay
        if relay.leader is self:
            self._flying[work.place] = work
            self._own.append(work)
            relay.interrupt()
        else:
            super().execute(work)

    def instruct(self, instruction: Callable[[Instance], None]) -> None:
        """Call that with the instance, on its thread, after what was given to it before."""
        self._step_down()
        super().instruct(instruction)

    def stop(self) -> None:
        """Close the instance after what was given to it before."""
        self._step_down()
        super().stop()

    def lead(self, mark: Mark) -> None:
        """See `Leader`."""
        self._inbox.put(functools.partial(self._lead, mark))

    def overtaken(self) -> None:
        """See `Leader`."""
        self._briskness.bar(monotonic())

    def _step_down(self) -> None:
        if self._relay.leader is self:
            self._relay.appoint(None)

    def _arrived(self, work: Work) -> None:
        if self._flying.get(work.place) is not work:
            return
        relay, briskness = self._relay, self._briskness
        briskness.executed(work.done_ns - work.started_ns, len(work.calls))
        if relay.leader is not self or briskness.is_slow or relay.election.is_contested:
            self._stand()
        super()._arrived(work)

    def _stand(self) -> None:
        """Find out whether to lead, before the next batch is sent."""
        relay, briskness = self._relay, self._briskness
        leads, now = relay.leader is self, monotonic()
        if leads and briskness.is_slow:
            briskness.bar(now)
            self._step_down()
        elif not briskness.may_lead(now):
            return
        elif relay.election.counted(self, relay.leader) and len(self._flying) == 1:
            briskness.appointed()
            relay.appoint(self)

    def _lead(self, mark: Mark, instance: Instance) -> None:
        """Have the loop until somebody else is appointed, or this thread is overtaken.

        Whatever is raised meanwhile, the loop goes to the main thread: nobody else could take it from here.
        """
        relay, own = self._relay, self._own
        self._thread = threading.get_ident()
        self._has_loop = end(mark)
        try:
            while self._has_loop and relay.leader is self:
                if own:
                    self._execute_some(instance, mark)
                if self._has_loop and relay.leader is self:
                    relay.turn(once=bool(own))
        except BaseException:
            if self._has_loop:
                relay.leader = None
            raise
        finally:
            if self._has_loop:
                self._has_loop = False
                relay.pass_on()
        while own:
            self._execute(instance, own.popleft())

    def _execute_some(self, instance: Instance, mark: Mark) -> None:
        """Execute the batches in `_own`, and a few times what comes of that, unless another thread takes the loop.

        No loop runs on this thread meanwhile, but for the listeners, who are told at once: that saves a round of it.
        """
        relay, own, loop = self._relay, self._own, self._loop
        for _ in range(_IN_A_ROW):
            told: list[_Told] = []
            self._told = told
            relay.begin(self, mark)
            try:
                self._execute(instance, own.popleft())
            finally:
                self._told = None
                self._has_loop = end(mark)
            if not self._has_loop:
                for listener, arguments in told:
                    self._tell(listener, *arguments)
                return
            asyncio._set_running_loop(loop)
            try:
                for listener, arguments in told:
                    self._call(listener, arguments)
            finally:
                asyncio._set_running_loop(None)
            if not own or relay.leader is not self:
                return

    def _call(self, listener: Callable[..., None], arguments: tuple[object, ...]) -> None:
        try:
            listener(*arguments)
        except BaseException as error:  # noqa: BLE001 - as the relay does with what a callback of the loop raises
            raise_interrupt(error)
            self._loop.call_exception_handler({"message": f"hearing of instance '{self.name}'", "exception": error})

    def _tell(self, listener: Callable[..., None], *arguments: object) -> None:
        told = self._told
        if told is not None and threading.get_ident() == self._thread:
            told.append((listener, arguments))
        else:
            super()._tell(listener, *arguments)


class LeadingNativeWorker(LeadingWorker, NativeWorker):
    """The same for models that compute outside of Python."""

    allowed_ns = NATIVE_NANOSECONDS
