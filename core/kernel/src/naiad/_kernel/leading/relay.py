"""Which thread runs the event loop: the main one, or that of the instance which is asked most and answers quickly.

It is the pattern Leader/Followers (Schmidt, Stal, Rohnert, Buschmann: Pattern-Oriented Software Architecture 2).
"""

import asyncio
import logging
import queue
import threading
from collections.abc import Coroutine
from typing import Any, Protocol, TypeVar

from naiad._kernel.leading.candidacy import Election
from naiad._kernel.leading.watch import Watch, timer
from naiad.foreign_errors import describe_error, raise_interrupt

_T = TypeVar("_T")
_logger = logging.getLogger("naiad")

Mark = list["Leader"]
"""Holds the leader while it executes, or is on its way to lead. Whoever takes it out has the event loop to give."""


class Leader(Protocol):
    """Somebody with a thread that can run the event loop."""

    def lead(self, mark: Mark) -> None:
        """The event loop is yours as soon as your thread is free, if `mark` still holds you then. For any thread."""
        ...

    def overtaken(self) -> None:
        """Your execution takes so long that another thread runs the loop now. Called while nobody runs it."""
        ...


class Relay:
    """Hands an event loop from thread to thread.

    One thread has the loop: it runs it, or executes a batch meanwhile, between two runs and never inside of one. So
    when an execution takes long, or waits for something that only the loop can give, the main thread goes on with the
    loop, and nothing else waits for it longer than the watch allows (`watch.LONG`).
    """

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.loop = loop
        self.leader: Leader | None = None
        """Who is to have the loop from now on; None for the main thread. For the thread that has it."""
        self.is_running = False
        self.election = Election()
        self._mark: Mark = []
        self._thread = 0
        self._home: queue.SimpleQueue[None] = queue.SimpleQueue()
        self._watch = Watch(self.overtake, timer())
        self._over = False

    def run(self, main: Coroutine[Any, Any, _T]) -> _T:
        """Run a coroutine until it returns. The calling thread has the loop at first and in the end."""
        task = self.loop.create_task(main)
        task.add_done_callback(self._finish)
        self._watch.start()
        try:
            while not self._over:
                self.turn()
                if self.leader is not None:
                    self.pass_on()
                    self._home.get()
        finally:
            self._watch.end()
        return task.result()

    def turn(self, once: bool = False) -> None:
        """Run the loop until somebody stops it, or for one round. For the thread that has it.

        A loop lets SystemExit and KeyboardInterrupt of a callback through, which end the callback alone here.
        """
        if once:
            self.loop.stop()
        self.is_running = True
        try:
            self.loop.run_forever()
        except (SystemExit, KeyboardInterrupt, GeneratorExit) as error:
            raise_interrupt(error)
            _logger.critical(
                "a callback of the event loop raised %s; the server goes on", describe_error(error), exc_info=error
            )
        finally:
            self.is_running = False

    def interrupt(self) -> None:
        """End the turn with this round. For the thread that has the loop."""
        if self.is_running:
            self.loop.stop()

    def appoint(self, leader: Leader | None) -> None:
        """Give the loop to that one after this round. For the thread that has it."""
        self.leader = None if self._over else leader
        self.interrupt()

    def pass_on(self) -> None:
        """Give the loop to whoever is to have it. For the thread that had it until now, outside of a turn."""
        leader = self.leader
        if leader is None:
            self._home.put(None)
            return
        mark: Mark = []
        self._mark = mark
        self._guard(leader, mark)
        leader.lead(mark)

    def begin(self, leader: Leader, mark: Mark) -> None:
        """The leader executes from now on, on this thread, and can be overtaken."""
        self._thread = threading.get_ident()
        self._guard(leader, mark)

    def let_go(self) -> None:
        """What executes on the calling thread is about to wait: if that one has the loop, another one needs it."""
        if threading.get_ident() == self._thread:
            self.overtake()

    def overtake(self) -> bool:
        """Let the main thread have the loop while the leader executes; whether it did. For any thread."""
        leader = _taken(self._mark)
        if leader is None:  # nobody executes at present, or another thread was faster
            return False
        self.leader = None
        try:
            leader.overtaken()
        finally:
            self._home.put(None)
        return True

    def _finish(self, _task: object) -> None:
        self._over = True
        self.appoint(None)

    def _guard(self, leader: Leader, mark: Mark) -> None:
        """From now on whoever takes the leader out of the mark has the loop."""
        self._watch.begin()
        mark.append(leader)


def end(mark: Mark) -> bool:
    """The leader of that mark has executed; whether it was not overtaken, and has the loop."""
    return _taken(mark) is not None


def _taken(mark: Mark) -> Leader | None:
    try:
        return mark.pop()
    except IndexError:
        return None
