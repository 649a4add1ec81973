"""Bodies in arenas that processes read: a block is free when neither side has a view of it."""

import asyncio
import gc
import socket
import threading
from collections.abc import Iterator

import numpy as np
import pytest

from naiad_process_workers.arenas import LARGE_BLOCK
from naiad_process_workers.bodies import BodyArenas
from naiad_process_workers.codec import Decoder, Encoder
from naiad_process_workers.connection import Connection, Memory
from naiad_process_workers.large_blocks import LargeBlocks
from naiad_tensors.tensors import Tensor

ANSWER, OTHER = 40, 41


class Links:
    """A server and a process with two links between them, as a model has a work link and a control link."""

    def __init__(self) -> None:
        server, process = Memory(), Memory(writable=True)
        self.bodies = server.bodies = BodyArenas()
        self.work, self.process_work = self._connected(server, process)
        self.control, self.process_control = self._connected(server, process)

    def _connected(self, server: Memory, process: Memory) -> tuple[Connection, Connection]:
        here, there = socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)
        for each in (here, there):
            each.settimeout(10)
        return Connection(here, server), Connection(there, process)

    def close(self) -> None:
        for connection in (self.work, self.process_work, self.control, self.process_control):
            connection.close()
            connection.memory.close()


@pytest.fixture
def links() -> Iterator[Links]:
    both = Links()
    yield both
    both.close()


def received(connection: Connection) -> np.ndarray:
    """The tensor in the next frame."""
    (frame,) = connection.receive()
    _, tensors = Decoder(frame.body, connection.memory.read).tensors()
    return tensors["x"].array


def send(connection: Connection, array: np.ndarray) -> None:
    encoder = Encoder(connection)
    encoder.tensors(("answer",), {"x": Tensor.of("x", array)})
    connection.send(ANSWER, 1, encoder.body(), encoder.kept)


def body(bodies: BodyArenas, size: int) -> np.ndarray:
    memory = bodies.reserve(size)
    assert memory is not None
    array = np.frombuffer(memory, np.uint8)
    array[:] = 7
    return array


def test_an_answer_with_an_input_is_read_though_another_link_says_before_that_the_input_is_free(links: Links) -> None:
    send(links.work, body(links.bodies, LARGE_BLOCK))
    array = received(links.process_work)
    send(links.process_work, array)
    del array
    gc.collect()

    links.process_control.send(OTHER)
    assert [frame.kind for frame in links.control.receive()] == [OTHER]

    assert received(links.work).tolist() == [7] * LARGE_BLOCK


def test_a_block_is_free_when_the_answer_with_it_was_read(links: Links) -> None:
    array = body(links.bodies, LARGE_BLOCK)
    (arena, _) = links.bodies.locate(array) or (None, 0)
    assert arena is not None
    send(links.work, array)
    del array
    send(links.process_work, received(links.process_work))
    assert received(links.work)[0] == 7

    assert links.work.flush()  # the answer was read
    assert links.process_work.receive() == []  # which frees the block in the process
    assert links.work.receive() == []
    links.bodies.collect()

    assert not arena.blocks


def test_an_input_that_a_model_passes_to_another_version_of_itself_is_copied() -> None:
    caller, called = Links(), Links()
    called.work.memory.bodies = caller.bodies  # which the versions of a model share
    try:
        send(caller.work, body(caller.bodies, LARGE_BLOCK))
        array = received(caller.process_work)
        send(caller.process_control, array)
        send(called.work, received(caller.control))

        received(called.process_work)[:] = 9

        assert array.tolist() == [7] * LARGE_BLOCK
    finally:
        caller.close()
        called.close()


def test_large_blocks_are_given_back_once_for_all_that_are_free_by_then() -> None:
    given_back = []

    async def main() -> None:
        done = asyncio.Event()
        loop = asyncio.get_running_loop()
        freed = Memory().read.freed

        def give_back() -> None:
            given_back.append(list(freed))
            done.set()

        blocks = LargeBlocks(freed, loop, give_back)
        thread = threading.Thread(target=lambda: [blocks.append((1, offset)) for offset in range(3)])
        thread.start()
        thread.join()
        await asyncio.wait_for(done.wait(), 10)

    asyncio.run(main())

    assert given_back == [[(1, 0), (1, 1), (1, 2)]]
