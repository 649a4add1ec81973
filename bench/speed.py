"""How fast the machine is while something is measured: a process on each processor that times a little work.

A virtual machine shares its cores with others: the same work takes up to twice the time in one second as in the next,
and the operating system counts that as processor time. So each probe times a fixed loop, 50 times a second and for
less than 2 % of its processor's time, ahead of everything else where it may (`SCHED_FIFO`, for root).

>>> with MachineSpeed() as machine:
...     before = machine.mark()
...     measure()
...     machine.since(before) / machine.best  # 0.6: all took 1 / 0.6 of the time that it takes at full speed
"""

import os
import struct
import sys
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from mmap import mmap
from statistics import mean
from types import TracebackType
from typing import Self

_LOOPS = 4000
_PERIOD = 0.02
_LASTING = 5
"""A speed counts as the best once so many loops in a row reached it: a single one may be luck."""
_SLOT = struct.Struct("ddd")
"""Of each processor: the sum of the speeds that its probe has seen, their count, and the best that lasted."""


@dataclass(frozen=True, slots=True)
class Mark:
    """The sums of all probes at one time, and their counts."""

    sums: tuple[float, ...]
    counts: tuple[float, ...]


class MachineSpeed:
    """The speed of this machine's processors, in loops of a probe a second; to be used in a `with` block."""

    def __init__(self) -> None:
        self._processors = sorted(os.sched_getaffinity(0))
        self._shared = mmap(-1, max(4096, _SLOT.size * len(self._processors)))
        self._children: list[int] = []

    def __enter__(self) -> Self:
        for index, processor in enumerate(self._processors):
            child = os.fork()
            if not child:
                self._probe(index, processor)
            self._children.append(child)
        while not all(self.mark().counts):
            time.sleep(_PERIOD)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for child in self._children:
            os.kill(child, 9)
            os.waitpid(child, 0)

    def mark(self) -> Mark:
        """The state of the probes now, for `since`."""
        slots = self._slots()
        return Mark(tuple(slot[0] for slot in slots), tuple(slot[1] for slot in slots))

    def since(self, before: Mark) -> float:
        """The mean speed of all processors since that mark."""
        now = self.mark()
        sums = (last - first for first, last in zip(before.sums, now.sums, strict=True))
        counts = (last - first for first, last in zip(before.counts, now.counts, strict=True))
        return mean(each / count for each, count in zip(sums, counts, strict=True) if count)

    @property
    def best(self) -> float:
        """The best speed that any of them has had for some time."""
        return max(slot[2] for slot in self._slots())

    def _slots(self) -> Sequence[tuple[float, float, float]]:
        return [_SLOT.unpack_from(self._shared, _SLOT.size * index) for index in range(len(self._processors))]

    def _probe(self, index: int, processor: int) -> None:
        """Time the loop again and again, until the process is killed or its parent has gone."""
        os.sched_setaffinity(0, {processor})
        with suppress(PermissionError):
            os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1))
        parent, total, count, best, last = os.getppid(), 0.0, 0.0, 0.0, [0.0] * _LASTING
        try:
            while os.getppid() == parent:
                speed = 1 / _seconds_of_the_loop()
                last = [*last[1:], speed]
                total, count, best = total + speed, count + 1, max(best, min(last))
                _SLOT.pack_into(self._shared, _SLOT.size * index, total, count, best)
                time.sleep(_PERIOD)
        finally:
            os._exit(0)


def _seconds_of_the_loop() -> float:
    started, total = time.perf_counter(), 0
    for number in range(_LOOPS):
        total += number * number % 7
    return time.perf_counter() - started


if __name__ == "__main__":
    with MachineSpeed() as probes:
        for _ in range(int(sys.argv[1]) if len(sys.argv) > 1 else 10):
            began = probes.mark()
            time.sleep(1)
            print(f"{probes.since(began) / probes.best:.2f}", flush=True)
