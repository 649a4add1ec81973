"""Checks that a decoder's work is bounded: CPU time in a turn of the event loop, growth with its input, and memory.

A decoder of hostile input passes `check_cost` when all of these hold, as measured with inputs of n and of 4n bytes:

* no turn of the event loop takes more than 100 ms of CPU time (design: "the loop never stands still");
* four times the input takes about four times the CPU time, and at most eight times;
* it allocates at most a fixed number of bytes for each byte of the larger input.

CPU time of this process is measured, not the wall clock, so a busy machine does not matter. A decoder that works on
another thread, but holds the interpreter's lock there, fails as it would on the loop: the turn lasts as long.
"""

import asyncio
import gc
import inspect
import tracemalloc
from collections.abc import Awaitable, Callable, Sized
from contextlib import suppress
from dataclasses import dataclass
from time import process_time
from typing import TypeAlias, TypeVar

from naiad.errors import NaiadError

_S = TypeVar("_S", bound=Sized)
_Times: TypeAlias = tuple[float, float]
"""The CPU seconds of a run, and those of its longest turn of the event loop."""

LONGEST_TURN = 0.1
"""Seconds of CPU time that a turn of the event loop may take."""

_FACTOR = 4
"""The larger input is so many times the smaller one: four times the time is linear then, sixteen times quadratic."""

_GROWTH = 2.0
"""The larger input may take so many times what is linear: as far from that as from what is quadratic."""

_NOISE_SECONDS = 0.005
_NOISE_BYTES = 262144
_RUNS = 3
_ATTEMPTS = 4
"""A decoder fails when it does so each time: a shared machine may take three times as long for a moment."""


@dataclass(frozen=True, slots=True)
class Cost:
    """CPU seconds of all threads, those of the longest turn of the loop, and the peak of allocated bytes."""

    cpu_seconds: float
    longest_turn: float
    peak_bytes: int


def check_cost(
    decode: Callable[[_S], object],
    input_of: Callable[[int], _S],
    size: int,
    *,
    bytes_per_byte: float,
    longest_turn: float = LONGEST_TURN,
    refusals: tuple[type[Exception], ...] = (NaiadError,),
) -> Cost:
    """Assert that `decode` is linear and bounded; returns the cost of the larger input.

    `input_of(n)` makes an input of about n bytes, `size` and four times as many (it may have any length; what counts is
    `len`). `decode` may be a coroutine function, and may refuse its input with one of `refusals`. `bytes_per_byte`
    bounds the memory: the peak for each byte of input. Choose a `size` for which `decode` takes some milliseconds.
    """
    small, large = input_of(size), input_of(_FACTOR * size)
    peak_bytes = _measure_memory(lambda: decode(large), refusals)  # also the first run, which may be slower
    of_small: list[_Times] = []
    of_large: list[_Times] = []
    for attempt in range(1, _ATTEMPTS + 1):
        # The smaller input twice: measured as too slow, it would hide that the larger one takes too long.
        of_small.append(_measure_time(lambda: decode(small), refusals))
        of_large.append(_measure_time(lambda: decode(large), refusals))
        of_small.append(_measure_time(lambda: decode(small), refusals))
        cost = _best(of_large, peak_bytes)
        try:
            _check(_best(of_small).cpu_seconds, cost, len(small), len(large), bytes_per_byte, longest_turn)
        except AssertionError:
            if attempt == _ATTEMPTS:
                raise
        else:
            break
    return cost


def _check(seconds: float, cost: Cost, small: int, large: int, bytes_per_byte: float, longest_turn: float) -> None:
    """Raise AssertionError where `cost`, of `large` bytes, is not bounded; `small` bytes take `seconds` of CPU time."""
    if cost.longest_turn > longest_turn:
        raise AssertionError(
            f"{large} bytes took {cost.longest_turn:.3f} s of CPU time in one turn of the event loop; "
            f"{longest_turn} s is the limit"
        )
    if cost.cpu_seconds > _GROWTH * seconds * large / max(small, 1) + _NOISE_SECONDS:
        raise AssertionError(
            f"not linear: {large} bytes took {cost.cpu_seconds:.4f} s of CPU time, {small} bytes {seconds:.4f} s"
        )
    if cost.peak_bytes > bytes_per_byte * large + _NOISE_BYTES:
        raise AssertionError(
            f"{large} bytes took {cost.peak_bytes} bytes of memory, {cost.peak_bytes / max(large, 1):.1f} for "
            f"each; {bytes_per_byte:g} is the limit"
        )


def measure_cost(work: Callable[[], object], refusals: tuple[type[Exception], ...] = (NaiadError,)) -> Cost:
    """What `work` costs, the best of a few runs; where it returns an awaitable, that runs on a new event loop."""
    return _best([_measure_time(work, refusals) for _ in range(_RUNS)], _measure_memory(work, refusals))


def _best(runs: list[_Times], peak_bytes: int = 0) -> Cost:
    return Cost(min(cpu for cpu, _ in runs), min(turn for _, turn in runs), peak_bytes)


def _measure_time(work: Callable[[], object], refusals: tuple[type[Exception], ...]) -> _Times:
    collecting = gc.isenabled()
    gc.disable()  # a collection that other tests brought about is not the decoder's
    try:
        return asyncio.run(_measure_turns(work, refusals))
    finally:
        if collecting:
            gc.enable()


def _measure_memory(work: Callable[[], object], refusals: tuple[type[Exception], ...]) -> int:
    tracemalloc.start()
    try:
        asyncio.run(_run(work, refusals))
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


async def _measure_turns(work: Callable[[], object], refusals: tuple[type[Exception], ...]) -> _Times:
    """The CPU seconds that this process takes for `work`, and the most between two turns of the event loop."""
    heartbeat = _Heartbeat(asyncio.get_running_loop())
    began = process_time()
    heartbeat.begin()
    try:
        await _run(work, refusals)
    finally:
        heartbeat.stop()
    return process_time() - began, heartbeat.longest


class _Heartbeat:
    """Runs once in each turn of the event loop; `longest` is the most CPU time between two beats."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.longest = 0.0
        self._loop = loop
        self._last = 0.0
        self._next: asyncio.Handle | None = None

    def begin(self) -> None:
        """Start to measure."""
        self._last = process_time()
        self._next = self._loop.call_soon(self._beat)

    def stop(self) -> None:
        """End the turn that runs, and measure no further one."""
        self._beat()
        if self._next is not None:
            self._next.cancel()

    def _beat(self) -> None:
        now = process_time()
        self.longest, self._last = max(self.longest, now - self._last), now
        if self._next is not None:
            self._next.cancel()
        self._next = self._loop.call_soon(self._beat)


async def _run(work: Callable[[], object], refusals: tuple[type[Exception], ...]) -> None:
    with suppress(*refusals):
        result = work()
        if inspect.isawaitable(result):
            awaitable: Awaitable[object] = result
            await awaitable
