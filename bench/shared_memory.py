"""What reading and writing a shared memory region costs in CPU time, by size; regions of several clients take turns.

The columns: a read into a fresh array that is let go, the same with the last arrays held as requests in flight hold
them, a read into one array again and again (what a pool of buffers could gain at best), and a write; a loan that is
read and taken back, and the same from a private mapping whose pages are dropped afterwards (MADV_DONTNEED) or which is
made for each loan, instead of looking up in the page map which pages were written to.
"""

import argparse
import mmap
import os
from collections import deque
from collections.abc import Callable
from itertools import cycle
from pathlib import Path
from statistics import median
from time import thread_time

import numpy as np

from naiad_shared_memory.region import Region
from naiad_shared_memory.regions import SharedMemory

_REGIONS = 8
_IN_FLIGHT = 16
_TURNS = 20


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sizes", type=int, nargs="+", default=[64, 4096, 600_000, 4_000_000])
    parser.add_argument("--rounds", type=int, default=100)
    arguments = parser.parse_args()
    columns = " ".join(f"{name:>9}" for name in ("read", "held", "reused", "write", "loan", "dropped", "mapped"))
    print(f"{'bytes':>9} {columns}   µs of CPU time, medians of {arguments.rounds}, the best of {_TURNS}")
    for size in arguments.sizes:
        message = " ".join(f"{1e6 * seconds:9.1f}" for seconds in measured(size, arguments.rounds))
        print(f"{size:>9} {message}")


def measured(size: int, rounds: int) -> list[float]:
    """The seconds of each column for a size in bytes: the columns take turns, and the best median counts."""
    memory = SharedMemory(allowed=True, lends=True)
    paths = [Path(f"/dev/shm/naiad_bench_{os.getpid()}_{number}") for number in range(_REGIONS)]
    try:
        for path in paths:
            path.write_bytes(os.urandom(size))
            memory.register_system(path.name, f"/{path.name}", 0, size)
        regions = [memory.region(path.name) for path in paths]
        descriptors = [os.open(path, os.O_RDONLY) for path in paths]
        private = mmap.PROT_READ | mmap.PROT_WRITE
        mappings = [mmap.mmap(each, size, mmap.MAP_PRIVATE, private) for each in descriptors]
        held: deque[np.ndarray] = deque(maxlen=_IN_FLIGHT)
        reused = np.empty(size, np.uint8)
        content = np.random.default_rng(1).bytes(size)
        columns: list[Callable[[Region], object]] = [
            lambda region: region.read(0, size),
            lambda region: held.append(region.read(0, size)),
            lambda region: os.preadv(descriptors[regions.index(region)], [reused], 0),
            lambda region: region.write(0, size, content, "OUT"),
            lambda region: _lent(region, size),
            lambda region: _dropped(mappings[regions.index(region)]),
            lambda region: _mapped(descriptors[regions.index(region)], size),
        ]
        turns = [[_median(column, regions, rounds) for column in columns] for _ in range(_TURNS)]
        return [min(medians) for medians in zip(*turns, strict=True)]
    finally:
        for path in paths:
            path.unlink(missing_ok=True)


def _lent(region: Region, size: int) -> None:
    loan = region.lend(0, size)
    if loan is None:
        raise SystemExit("the region lends nothing: guard.c was not built, or the segment has holes")
    loan.array[::64].sum()
    loan.end()


def _dropped(mapping: mmap.mmap) -> None:
    np.frombuffer(mapping, np.uint8)[::64].sum()
    mapping.madvise(mmap.MADV_DONTNEED)


def _mapped(descriptor: int, size: int) -> None:
    mapping = mmap.mmap(descriptor, size, mmap.MAP_PRIVATE, mmap.PROT_READ | mmap.PROT_WRITE)
    np.frombuffer(mapping, np.uint8)[::64].sum()
    mapping.close()


def _median(work: Callable[[Region], object], regions: list[Region], rounds: int) -> float:
    seconds = []
    for _, region in zip(range(rounds), cycle(regions), strict=False):
        started = thread_time()
        work(region)
        seconds.append(thread_time() - started)
    return median(seconds)


if __name__ == "__main__":
    main()
