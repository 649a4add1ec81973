"""Limits of the transport: calls, connections, silent clients, and the bytes of messages in flight."""

import asyncio

import pytest

from naiad_kit.frontends.byte_budget import UNCHARGED_BYTES

from .conftest import Calls, Served, answer

LARGE = bytes(UNCHARGED_BYTES + 1)
SETTINGS = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + bytes(3) + b"\x04" + bytes(5)
"""What a client of HTTP/2 says first, with an empty SETTINGS frame."""


def test_calls_over_the_limit_are_refused_at_once_and_health_is_answered(run):
    calls = Calls()

    async def main():
        async with Served(calls, **{"grpc-max-calls": 2}) as served, served.channel() as channel:
            waiting = [asyncio.ensure_future(answer(channel, "wait", b"late")) for _ in range(2)]
            while served.listener.calls_in_flight < 2:
                await answer(channel, "alive")
            refused = await answer(channel, "echo")
            alive = await answer(channel, "alive", b"x")
            calls.opened.set()
            return refused, alive, await asyncio.gather(*waiting), await answer(channel, "echo", b"next")

    (status, reason), alive, waited, following = run(main())

    assert (status, alive, waited, following) == ("UNAVAILABLE", b"x", [b"late"] * 2, b"next")
    assert reason.startswith("2 calls are in flight, and --grpc-max-calls allows 2")


def test_a_burst_of_as_many_calls_as_a_connection_may_have_is_answered(run):
    async def main():
        async with Served(Calls(), **{"grpc-max-concurrent-streams": 1000}) as served, served.channel() as channel:
            return await asyncio.gather(*(answer(channel, "echo", b"x") for _ in range(1000)))

    assert set(run(main())) == {b"x"}


def test_a_large_message_is_charged_to_the_byte_budget_while_its_call_runs(run):
    calls = Calls()

    async def main():
        async with Served(calls) as served, served.channel() as channel:
            waiting = asyncio.ensure_future(answer(channel, "wait", LARGE))
            await calls.entered.wait()
            charged = served.budget.reserved
            served.budget.limit = charged
            refused, small = await answer(channel, "echo", LARGE), await answer(channel, "echo", b"x")
            calls.opened.set()
            await waiting
            while served.budget.reserved:
                await answer(channel, "alive")
            return charged, refused, small, served.budget.peak

    charged, (status, reason), small, peak = run(main())

    assert (charged, status, small) == (len(LARGE), "UNAVAILABLE", b"x")
    assert "--max-bytes-in-flight" in reason
    assert peak == 2 * len(LARGE)  # the answer of the first call is as large as its request


def test_connections_over_the_limit_are_closed_at_once(run, tmp_path):
    path = tmp_path / "naiad.sock"

    async def main():
        async with Served(Calls(), **{"grpc-max-connections": 3, "grpc-address": f"unix:{path}"}):
            connections = [await asyncio.open_unix_connection(path) for _ in range(4)]
            closed, _ = await asyncio.wait(
                [asyncio.ensure_future(_until_closed(reader)) for reader, _ in connections],
                return_when=asyncio.FIRST_COMPLETED,
            )
            for _, writer in connections:
                writer.close()
            return len(closed)

    assert run(main()) == 1


@pytest.mark.parametrize(("option", "sent"), [("grpc-handshake-timeout", b""), ("grpc-max-connection-idle", SETTINGS)])
def test_a_client_that_keeps_silent_is_disconnected(run, option, sent):
    async def main():
        async with Served(Calls(), **{option: 50}) as served:
            host, port = served.target.rsplit(":", 1)
            reader, writer = await asyncio.open_connection(host, int(port))
            writer.write(sent)
            await _until_closed(reader)
            writer.close()

    run(main())


def test_a_client_that_keeps_silent_in_its_tls_handshake_is_disconnected(run, certificates):
    options = {
        "grpc-handshake-timeout": 50,
        "grpc-use-ssl": True,
        "grpc-server-cert": certificates.file("cert"),
        "grpc-server-key": certificates.file("key"),
    }

    async def main():
        async with Served(Calls(), **options) as served:
            host, port = served.target.rsplit(":", 1)
            reader, writer = await asyncio.open_connection(host, int(port))
            await _until_closed(reader)
            writer.close()

    run(main())


async def _until_closed(reader):
    while await reader.read(1000):
        pass
