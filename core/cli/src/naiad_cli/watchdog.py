"""Watchdog: ends the process when its event loop has stood still for too long, so that a supervisor restarts it."""

import asyncio
import faulthandler
import logging
import os
import sys
import threading
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from naiad_cli.process_end import end_process

_logger = logging.getLogger("naiad")

STATUS = 70
"""The exit status of a process whose event loop stood still: EX_SOFTWARE of sysexits.h."""

CHECKS = 12
"""The number of checks in a row without a sign of life that are a stall.

Each one is counted when the watchdog's own thread has run: a process that was stopped (SIGSTOP), a machine that was
suspended and C code that keeps the interpreter's lock hold the watchdog up as well, and count as one check.
"""

_STDERR = 2
_SECONDS_TO_REPORT = 5.0
_FRAMES_NAMED = 3


class Watchdog:
    """Posts a beat to an event loop, whichever thread runs it, and counts the checks that have not seen it.

    `post` makes the loop call a function, from any thread; it raises RuntimeError when the loop is closed. `on_stall`
    is called with the thread that ran the loop last.
    """

    def __init__(self, post: Callable[[Callable[[], None]], object], on_stall: Callable[[int], None]) -> None:
        self._post = post
        self._on_stall = on_stall
        self._has_beaten = True
        self._missed = 0
        self._thread = threading.get_ident()

    def check(self) -> bool:
        """Count a check, and post the next beat if the last one has arrived; False when the loop is closed."""
        if self._has_beaten:
            self._has_beaten = False
            self._missed = 0
            try:
                self._post(self._beat)
            except RuntimeError:
                return False
            return True
        self._missed += 1
        if self._missed == CHECKS:
            self._on_stall(self._thread)
        return True

    def _beat(self) -> None:
        self._thread = threading.get_ident()
        self._has_beaten = True


@contextmanager
def watching(loop: asyncio.AbstractEventLoop, seconds: float) -> Iterator[None]:
    """End the process if the loop stands still for so many seconds within the block; 0 watches nothing."""
    if not seconds:
        yield
        return
    over = threading.Event()
    watchdog = Watchdog(loop.call_soon_threadsafe, lambda thread: end_stalled_process(seconds, thread))

    def run() -> None:
        while not over.wait(seconds / CHECKS) and watchdog.check():
            pass

    threading.Thread(target=run, name="naiad-watchdog", daemon=True).start()
    try:
        yield
    finally:
        over.set()


def end_stalled_process(seconds: float, thread: int) -> None:
    """Log where the loop stands still, write the stacks of all threads to stderr, and exit with `STATUS`.

    Within five seconds, even if the log is not read.
    """
    alarm = threading.Timer(_SECONDS_TO_REPORT, os._exit, (STATUS,))
    alarm.daemon = True
    alarm.start()
    _logger.critical(
        "the event loop has stood still for %g s (--watchdog-secs), %s; the process ends with status %d",
        seconds,
        location_of(thread),
        STATUS,
    )
    faulthandler.dump_traceback(_STDERR, all_threads=True)
    end_process(STATUS)


def location_of(thread: int) -> str:
    """Where a thread is: its innermost calls."""
    frame = sys._current_frames().get(thread)
    if frame is None:
        return "and the thread that ran it last has ended"
    calls = traceback.extract_stack(frame)[-_FRAMES_NAMED:]
    return "in " + ", called by ".join(f"{call.name} ({call.filename}:{call.lineno})" for call in reversed(calls))
