"""A process whose threads free blocks of some MiB and live on, as those of instances do; prints its resident MiB."""

import ctypes
import json
import threading

from naiad_cli.allocator import FreePages, bound_allocator
from naiad_cli.memory import resident_bytes

THREADS = 7
BLOCKS, BYTES = 3, 5 * 2**20


def main() -> None:
    bound_allocator()
    library = ctypes.CDLL(None)
    library.malloc.restype, library.malloc.argtypes = ctypes.c_void_p, [ctypes.c_size_t]
    library.free.argtypes = [ctypes.c_void_p]
    stop, pages, resident = threading.Event(), FreePages(), {"start": resident_mebibytes()}

    def use(freed: threading.Barrier) -> None:
        blocks = [library.malloc(BYTES) for _ in range(BLOCKS)]
        for block in blocks:
            ctypes.memset(block, 1, BYTES)
        for block in blocks:  # nothing else was allocated meanwhile: they are the end of the arena
            library.free(block)
        freed.wait()
        stop.wait()

    def run_threads(count: int) -> None:
        freed = threading.Barrier(count + 1)
        for _ in range(count):
            threading.Thread(target=use, args=(freed,), daemon=True).start()
        freed.wait()

    run_threads(THREADS)
    resident["freed"] = resident_mebibytes()
    if thread := pages.give_back():
        thread.join()
    resident["given back"] = resident_mebibytes()
    run_threads(1)
    resident["freed again"] = resident_mebibytes()
    print(json.dumps(resident))
    stop.set()


def resident_mebibytes() -> float:
    return resident_bytes() / 2**20


if __name__ == "__main__":
    main()
