"""The pipe through which grpcio wakes the event loop: grpcio takes it, and no other code gets it."""

import os
import socket
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from naiad_grpc.transport import experiments
from naiad_grpc.transport.waking import PipeEnd, pipe_wakeups

SERVE = """
import asyncio, os, stat, grpc
from naiad_grpc.transport import experiments
from naiad_grpc.transport.waking import pipe_wakeups

def pipes():
    kinds = []
    for each in os.listdir("/proc/self/fd"):
        try:
            kinds.append(stat.S_ISFIFO(os.stat(int(each)).st_mode))
        except OSError:
            pass  # the one through which the folder was read
    return sum(kinds)

async def answer(message, context):
    return message * 2

async def main():
    method = grpc.unary_unary_rpc_method_handler(answer)
    before = pipes()
    with pipe_wakeups():
        server = grpc.aio.server()
    server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler("a", {"b": method}),))
    port = server.add_insecure_port("127.0.0.1:0")
    await server.start()
    async with grpc.aio.insecure_channel(f"127.0.0.1:{port}") as channel:
        ask = channel.unary_unary("/a/b")
        answers = await asyncio.gather(*(ask(b"%d " % number) for number in range(100)))
    print(pipes() - before, answers == [b"%d " % number * 2 for number in range(100)])
    await server.stop(0)

asyncio.run(main())
"""


@pytest.mark.skipif(not Path("/proc/self/fd").is_dir(), reason="looks at open files where Linux shows them")
def test_grpcio_serves_with_the_loop_woken_by_a_pipe():
    ran = subprocess.run([sys.executable, "-c", SERVE], capture_output=True, text=True, check=False, timeout=60)

    assert (ran.stdout.split(), ran.stderr) == (["2", "True"], "")


def test_one_read_takes_all_bytes():
    with pipe_wakeups():
        reading, writing = socket.socketpair()
    reading.setblocking(False)
    os.write(writing.fileno(), b"1" * 100)

    assert reading.recv(1) == b"1" * 100
    with pytest.raises(BlockingIOError):
        reading.recv(1)
    reading.close()
    writing.close()


def test_other_threads_and_later_callers_get_sockets():
    pairs = []

    with pipe_wakeups():
        other = threading.Thread(target=lambda: pairs.append(socket.socketpair()))
        other.start()
        other.join()
    pairs.append(socket.socketpair())

    ends = [end for pair in pairs for end in pair]
    assert [type(end) for end in ends] == [socket.socket] * 4
    assert not any(isinstance(end, PipeEnd) for end in ends)
    for end in ends:
        end.close()


def test_another_grpcio_gets_sockets(monkeypatch):
    monkeypatch.setattr(experiments, "TESTED_VERSIONS", ("0.0.0",))

    with pipe_wakeups():
        pair = socket.socketpair()

    assert [type(end) for end in pair] == [socket.socket] * 2
    for end in pair:
        end.close()
