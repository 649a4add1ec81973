"""Servers of grpcio that have asked for several calls: every call is answered, and the end is as of any other."""

import asyncio
import subprocess
import sys

import grpc
import pytest
from grpc._cython import cygrpc

from naiad_grpc.transport import experiments
from naiad_grpc.transport.accepting import concurrent_accepts

SERVE = """
import asyncio, grpc
from naiad_grpc.transport.accepting import concurrent_accepts

async def answer(message, context):
    return message * 2

async def main():
    asyncio.get_running_loop().slow_callback_duration = 60  # a busy machine is no fault
    with concurrent_accepts():
        server = grpc.aio.server()
    method = grpc.unary_unary_rpc_method_handler(answer)
    server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler("a", {"b": method}),))
    port = server.add_insecure_port("127.0.0.1:0")
    await server.start()
    async with grpc.aio.insecure_channel(f"127.0.0.1:{port}") as channel:
        ask = channel.unary_unary("/a/b")
        for _ in range(3):
            answers = await asyncio.gather(*(ask(b"%d " % number) for number in range(100)))
            assert answers == [b"%d " % number * 2 for number in range(100)]
    await server.stop(None)
    print(len(asyncio.all_tasks()), type(server._server).__name__)

asyncio.run(main(), debug=True)
"""


def test_a_crowd_is_answered_and_nothing_is_left_over_or_said():
    ran = subprocess.run([sys.executable, "-c", SERVE], capture_output=True, text=True, check=False, timeout=60)

    assert (ran.stdout.split(), ran.stderr) == (["1", "Acceptor"], "")


def test_only_servers_that_are_made_within_are_such():
    before = cygrpc.AioServer

    with concurrent_accepts():
        assert cygrpc.AioServer is not before
    assert cygrpc.AioServer is before


def test_servers_of_another_grpcio_are_its_own(monkeypatch):
    monkeypatch.setattr(experiments, "TESTED_VERSIONS", ("0.0.0",))
    before = cygrpc.AioServer

    with concurrent_accepts():
        assert cygrpc.AioServer is before


@pytest.mark.parametrize("grace", [0, 0.2])
def test_a_server_that_is_stopped_in_a_crowd_ends_and_leaves_no_caller_waiting(grace):
    async def main():
        answered = asyncio.Event()

        async def answer(message, _context):
            answered.set()
            await asyncio.sleep(0)
            return message

        with concurrent_accepts():
            server = grpc.aio.server()
        method = grpc.unary_unary_rpc_method_handler(answer)
        server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler("a", {"b": method}),))
        port = server.add_insecure_port("127.0.0.1:0")
        await server.start()
        ended = []

        async def ask(channel):
            while True:
                try:
                    await channel.unary_unary("/a/b")(b"x")
                except grpc.aio.AioRpcError as error:
                    ended.append(error.code())
                    return

        async with grpc.aio.insecure_channel(f"127.0.0.1:{port}") as channel:
            callers = [asyncio.ensure_future(ask(channel)) for _ in range(200)]
            await answered.wait()
            await asyncio.wait_for(server.stop(grace), 20)
            await asyncio.wait_for(asyncio.gather(*callers), 20)
        return ended

    ended = asyncio.run(main())

    assert len(ended) == 200
    assert set(ended) <= {grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.CANCELLED, grpc.StatusCode.UNKNOWN}
