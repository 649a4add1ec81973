"""Hand-off of the event loop between the main thread and the threads of instances with short executions.

This is the pattern Leader/Followers (Schmidt, Stal, Rohnert, Buschmann: Pattern-Oriented Software Architecture 2).
"""

import asyncio
import logging
import queue
import threading
from collections.abc import Coroutine
from contextlib import AbstractContextManager
from typing import Any, Protocol, TypeVar

from naiad.foreign_errors import describe_error, raise_interrupt
from naiad_loop_handoff.candidacy import MajorityVote
from naiad_loop_handoff.switch_interval import SwitchInterval
from naiad_loop_handoff.watchdog import Watchdog, timer

_T = TypeVar("_T")
_logger = logging.getLogger("naiad")

LoopToken = list["Leader"]
"""Holds the leader while it executes, or is on its way to lead. The thread that takes the leader out has the loop."""


class Leader(Protocol):
    """A worker with a thread that can run the event loop."""

    def lead(self, token: LoopToken) -> None:
        """Run the event loop as soon as the thread is free, if `token` still holds this leader then. For any thread."""
        ...

    def preempted(self) -> None:
        """The execution takes so long that another thread runs the loop now. Called while no thread runs it."""
        ...


class LoopHandoff:
    """The threads that run an event loop in turns; a `naiad.extend.LoopRunner`.

    One thread has the loop: it runs it, or executes a batch meanwhile, between two runs and never inside of one. So
    when an execution takes long, or waits for something that only the loop can give, the main thread goes on with the
    loop, and nothing else waits for it longer than the watchdog allows (`watchdog.LONG`).
    """

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.loop = loop
        self.leader: Leader | None = None
        """The leader that the loop goes to next; None for the main thread. For the thread that has the loop."""
        self.is_running = False
        self.vote = MajorityVote()
        self.switch_interval = SwitchInterval()
        self._token: LoopToken = []
        self._thread = 0
        self._home: queue.SimpleQueue[None] = queue.SimpleQueue()
        self._watchdog = Watchdog(self.preempt, timer())
        self._over = False

    def run(self, main: Coroutine[Any, Any, _T]) -> _T:
        """Run a coroutine until it returns. The calling thread has the loop at first and in the end."""
        task = self.loop.create_task(main)
        task.add_done_callback(self._finish)
        self._watchdog.start()
        try:
            while not self._over:
                self.run_loop()
                if self.leader is not None:
                    self.pass_on()
                    self._home.get()
        finally:
            self._watchdog.end()
        return task.result()

    def started(self) -> None:
        """Requests are answered from now on: threads that compute outside of Python get the interpreter sooner."""
        self.switch_interval.allowed = True

    def short_switch_interval(self) -> AbstractContextManager[None]:
        """Let no thread keep the interpreter long while the block runs, once the server has started."""
        return self.switch_interval.held()

    def release_loop(self) -> None:
        """What executes on the calling thread is about to wait: if that thread has the loop, another one needs it."""
        if threading.get_ident() == self._thread:
            self.preempt()

    def run_loop(self, once: bool = False) -> None:
        """Run the loop until it is stopped, or for one round. For the thread that has it.

        A loop lets SystemExit and KeyboardInterrupt of a callback through, which end the callback alone here.
        """
        if once:
            self.loop.stop()
        self.is_running = True
        try:
            self.loop.run_forever()
        except (SystemExit, KeyboardInterrupt, GeneratorExit) as error:
            raise_interrupt(error)
            described = describe_error(error)
            _logger.critical("a callback of the event loop raised %s; the server goes on", described, exc_info=error)
        finally:
            self.is_running = False

    def interrupt(self) -> None:
        """End the run with this round. For the thread that has the loop."""
        if self.is_running:
            self.loop.stop()

    def appoint(self, leader: Leader | None) -> None:
        """Give the loop to that leader after this round. For the thread that has it."""
        self.leader = None if self._over else leader
        self.interrupt()

    def pass_on(self) -> None:
        """Give the loop to the thread of `leader`. For the thread that had it until now, between two runs."""
        leader = self.leader
        if leader is None:
            self._home.put(None)
            return
        token: LoopToken = []
        self._token = token
        self.guard(leader, token)
        leader.lead(token)

    def took(self) -> None:
        """The calling thread has the loop from now on."""
        self._thread = threading.get_ident()

    def guard(self, leader: Leader, token: LoopToken) -> None:
        """The leader executes from now on, or is about to: the thread that takes it out of the token has the loop."""
        self._watchdog.begin()
        token.append(leader)

    def preempt(self) -> bool:
        """Let the main thread have the loop while the leader executes; whether it did. For any thread."""
        try:
            leader = self._token.pop()
        except IndexError:  # no leader executes at present, or another thread was faster
            return False
        self.leader = None
        try:
            leader.preempted()
        finally:
            self._home.put(None)
        return True

    def _finish(self, _task: object) -> None:
        self._over = True
        self.appoint(None)


def reclaim(token: LoopToken) -> bool:
    """The leader of that token has executed; whether it was not preempted, and has the loop."""
    try:
        token.pop()
    except IndexError:
        return False
    return True
