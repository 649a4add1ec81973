"""Arenas: blocks do not overlap, come back, and go with their processes."""

import fcntl
import gc
import os
import random
import resource

import numpy as np
import pytest

from naiad_process_workers.arenas import SMALLEST_ARENA, BlockAllocator, OwnArenas, ReadArenas
from naiad_process_workers.frames import LinkBrokenError

from .pair import connected, is_free


def test_blocks_never_overlap_and_join_when_they_are_free() -> None:
    chance = random.Random(7)
    blocks = BlockAllocator(1 << 16)
    used: dict[int, int] = {}

    for _ in range(5000):
        if used and chance.random() < 0.5:
            offset = chance.choice(list(used))
            blocks.free(offset)
            del used[offset]
            continue
        size = chance.randrange(1, 9000)
        offset = blocks.allocate(size)
        if offset is not None:
            assert offset % 64 == 0
            assert offset + size <= 1 << 16
            assert all(offset + size <= start or start + length <= offset for start, length in used.items())
            used[offset] = size
    for offset in used:
        blocks.free(offset)

    assert not blocks
    assert blocks.allocate(1 << 16) == 0


def test_a_block_is_freed_once() -> None:
    blocks = BlockAllocator(4096)
    offset = blocks.allocate(100)
    assert offset is not None
    blocks.free(offset)

    with pytest.raises(KeyError):
        blocks.free(offset)


class Pair:
    """Arenas of one side, and the other side's view of them."""

    def __init__(self) -> None:
        self.own, self.read = OwnArenas(), ReadArenas()

    def send(self, content: np.ndarray) -> np.ndarray:
        arena, offset = self.own.allocate(
            content.nbytes, None, lambda new: self.read.open(new.number, new.size, os.dup(new.descriptor))
        )
        arena.bytes[offset : offset + content.nbytes] = content.view(np.uint8)
        return self.read.array(arena.number, offset, content.nbytes, content.dtype, content.shape)

    def free(self) -> None:
        for number in self.own.free([self.read.freed.popleft() for _ in range(len(self.read.freed))]):
            self.read.retire(number)


def test_a_block_is_free_when_the_last_view_of_its_array_is_gone() -> None:
    pair = Pair()
    array = pair.send(np.arange(2000, dtype=np.int64))
    part = array[10:20]
    assert not array.flags.writeable
    del array
    assert not pair.read.freed
    assert part.tolist() == list(range(10, 20))

    del part
    pair.free()

    assert is_free(pair.own, None)


def test_arrays_outlive_the_link() -> None:
    pair = Pair()
    array = pair.send(np.arange(2000, dtype=np.int64))

    pair.own.close()
    pair.read.close()

    assert int(array.sum()) == 1999000


def test_large_arenas_go_when_their_blocks_are_free() -> None:
    pair = Pair()
    arrays = [pair.send(np.zeros(SMALLEST_ARENA * 4, np.uint8)) for _ in range(8)]
    assert pair.own.size == 8 * 4 * SMALLEST_ARENA

    arrays.clear()
    gc.collect()
    pair.free()

    assert pair.own.size <= 64 << 20
    assert len(pair.read) <= 4


def test_memory_that_can_shrink_is_refused() -> None:
    descriptor = os.memfd_create("plain")
    os.ftruncate(descriptor, 4096)

    with pytest.raises(LinkBrokenError, match="sealed"):
        ReadArenas().open(1, 4096, descriptor)
    with pytest.raises(OSError, match="Bad file"):
        os.fstat(descriptor)


def test_a_process_without_room_for_a_descriptor_says_so() -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    with connected() as (here, there):
        here.memory.own.allocate(1, here, here.announce)
        here.flush()
        free = os.dup(0)
        os.close(free)
        resource.setrlimit(resource.RLIMIT_NOFILE, (free, hard))
        try:
            with pytest.raises(LinkBrokenError, match="ulimit -n"):
                there.receive()
        finally:
            resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def test_an_arena_is_sealed() -> None:
    own = OwnArenas()
    arena, _ = own.allocate(10, None, lambda new: None)

    assert fcntl.fcntl(arena.descriptor, fcntl.F_GET_SEALS) & fcntl.F_SEAL_SHRINK
    with pytest.raises(OSError, match="not permitted"):
        os.ftruncate(arena.descriptor, 0)
    own.close()


@pytest.mark.parametrize("block", [(1, 0, SMALLEST_ARENA + 1), (2, 0, 1), (1, -64, 1)])
def test_a_block_outside_of_its_arena_breaks_the_link(block: tuple[int, int, int]) -> None:
    pair = Pair()
    pair.send(np.zeros(10, np.uint8))

    with pytest.raises(LinkBrokenError):
        pair.read.array(*block, np.dtype(np.uint8), (block[2],))


def test_a_block_that_was_not_sent_cannot_be_freed() -> None:
    with pytest.raises(LinkBrokenError):
        OwnArenas().free([(1, 0)])
