"""Addresses and ports of the listener, and the errors of those that it cannot use."""

import asyncio
import re
import socket
from contextlib import ExitStack

import pytest

from naiad.errors import InvalidArgumentError, UnavailableError
from naiad_grpc.grpcio import listener
from naiad_kit.frontends.endpoints import open_endpoint

from .conftest import Calls, Served, Transport


def served(address="127.0.0.1", port=0, share=False):
    return Served(Calls(), **{"grpc-address": address, "grpc-port": port, "reuse-grpc-port": share})


async def target_of(*endpoint, **more):
    """The target of a listener there that answers a call."""
    async with served(*endpoint, **more) as listening:
        assert await listening.ask("echo", b"x") == b"x"
        return listening.target


def test_a_free_endpoint_is_written_as_grpc_wants_it(run, tmp_path):
    assert re.fullmatch(r"127\.0\.0\.1:[1-9]\d+", run(target_of()))
    assert re.fullmatch(r"\[::1\]:[1-9]\d+", run(target_of("::1")))
    assert re.fullmatch(r"(127\.0\.0\.1|\[::1\]):[1-9]\d+", run(target_of("localhost")))
    assert run(target_of(f"unix:{tmp_path}/s")) == f"unix:{tmp_path}/s"


def test_a_taken_port_is_reported_with_the_option(run):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]

        with pytest.raises(UnavailableError) as caught:
            run(target_of(port=port))

    assert str(caught.value).startswith(f"gRPC cannot listen on 127.0.0.1 port {port}: Address already in use")
    assert "--grpc-port" in str(caught.value)


def test_a_port_may_be_shared_when_both_agree(run):
    async def main():
        async with served(share=True) as first:
            port = int(first.target.rpartition(":")[2])
            async with served(port=port, share=True) as second:
                with pytest.raises(UnavailableError, match="Address already in use"):
                    await served(port=port).listener.start()
                return first.target == second.target

    assert run(main())


class TakenPorts:
    """Free ports as the listener on grpcio opens them, of which the first `count` are taken once it has closed them."""

    def __init__(self, count, stack):
        self._count = count
        self._stack = stack

    async def open(self, *endpoint):
        opened = await open_endpoint(*endpoint)
        if self._count:
            self._count -= 1
            opened.close()
            host, port = opened.target.rsplit(":", 1)
            self._stack.enter_context(socket.create_server((host, int(port))))
        return opened


@pytest.mark.parametrize(("count", "tries"), [(2, 3), (3, 3)])
def test_of_free_ports_grpcio_takes_one_that_is_not_taken_meanwhile(monkeypatch, count, tries):
    async def main():
        async with served() as listening:
            return await listening.ask("echo", b"x")

    monkeypatch.setattr(Transport, "name", "grpcio")
    monkeypatch.setattr(listener, "_FREE_PORTS", tries)
    with ExitStack() as stack:
        monkeypatch.setattr(listener, "open_endpoint", TakenPorts(count, stack).open)

        if count < tries:
            assert asyncio.run(main()) == b"x"
        else:
            with pytest.raises(UnavailableError, match="gRPC could not bind to it"):
                asyncio.run(main())


@pytest.mark.parametrize(("first", "second"), [("127.0.0.1", "127.0.0.1"), ("0.0.0.0", "127.0.0.1")])
@pytest.mark.parametrize("swapped", [False, True])
def test_of_two_servers_on_one_port_the_second_is_refused_with_the_option(run, first, second, swapped):
    if swapped:
        first, second = second, first

    async def main():
        async with served(first) as listening:
            await served(second, int(listening.target.rpartition(":")[2])).listener.start()

    with pytest.raises(UnavailableError, match=r"Address already in use.*--grpc-port"):
        run(main())


@pytest.mark.parametrize(
    ("address", "kind", "message"),
    [
        ("no.such.host.invalid", InvalidArgumentError, "--grpc-address: 'no.such.host.invalid'"),
        ("203.0.113.1", UnavailableError, "gRPC cannot listen on 203.0.113.1 port 0"),
        ("unix:", InvalidArgumentError, "--grpc-address: 'unix:'"),
        ("unix:/no/such/folder/s", UnavailableError, "gRPC cannot listen on unix:/no/such/folder/s: No such file"),
        ("unix:/" + "x" * 300, UnavailableError, "gRPC cannot listen on unix:/xxx"),
        ("unix:/dev/null", UnavailableError, "not a socket"),
    ],
)
def test_an_unavailable_endpoint_is_refused_with_the_reason(run, address, kind, message):
    async def main():
        await served(address).listener.start()

    with pytest.raises(kind) as caught:
        run(main())

    assert message in str(caught.value)


def test_a_unix_socket_in_use_is_not_taken_from_who_uses_it(run, tmp_path):
    with socket.socket(socket.AF_UNIX) as taken:
        taken.bind(f"{tmp_path}/s")
        taken.listen()

        with pytest.raises(UnavailableError, match=f"gRPC cannot listen on unix:{tmp_path}/s: "):
            run(target_of(f"unix:{tmp_path}/s"))

        assert (tmp_path / "s").is_socket()
