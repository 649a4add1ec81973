"""Addresses and ports of the listener, and the errors of those that it cannot use."""

import asyncio
import re
import socket

import pytest

from naiad.errors import InvalidArgumentError, UnavailableError
from naiad_grpc.transport.addresses import reserved_target


def endpoint(address="127.0.0.1", port=0, share=False):
    async def main():
        async with reserved_target(address, port, share) as target:
            return target

    return asyncio.run(main())


def test_a_free_endpoint_is_written_as_grpc_wants_it(tmp_path):
    assert re.fullmatch(r"127\.0\.0\.1:[1-9]\d+", endpoint())
    assert re.fullmatch(r"\[::1\]:[1-9]\d+", endpoint("::1"))
    assert re.fullmatch(r"(127\.0\.0\.1|\[::1\]):[1-9]\d+", endpoint("localhost"))
    assert endpoint(f"unix:{tmp_path}/s") == f"unix:{tmp_path}/s"


def test_a_taken_port_is_reported_with_the_option():
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]

        with pytest.raises(UnavailableError) as caught:
            endpoint(port=port)

    assert str(caught.value).startswith(f"gRPC cannot listen on 127.0.0.1 port {port}: Address already in use")
    assert "--grpc-port" in str(caught.value)


def test_a_port_may_be_shared_when_both_agree():
    with socket.create_server(("127.0.0.1", 0), reuse_port=True) as taken:
        port = taken.getsockname()[1]

        assert endpoint(port=port, share=True) == f"127.0.0.1:{port}"
        with pytest.raises(UnavailableError):
            endpoint(port=port)


@pytest.mark.parametrize(("first", "second"), [("127.0.0.1", "127.0.0.1"), ("0.0.0.0", "127.0.0.1")])
@pytest.mark.parametrize("swapped", [False, True])
def test_of_two_servers_that_start_at_once_one_is_refused_with_the_option(first, second, swapped):
    if swapped:
        first, second = second, first

    async def main():
        async with reserved_target(first, 0, share=False) as target:
            await reserved_target(second, int(target.rpartition(":")[2]), share=False).__aenter__()

    with pytest.raises(UnavailableError, match=r"Address already in use.*--grpc-port"):
        asyncio.run(main())


@pytest.mark.parametrize(
    ("address", "kind", "message"),
    [
        ("no.such.host.invalid", InvalidArgumentError, "--grpc-address: 'no.such.host.invalid' is no address"),
        ("203.0.113.1", UnavailableError, "gRPC cannot listen on 203.0.113.1 port 0"),
        ("unix:", InvalidArgumentError, "names no path"),
        ("unix:/no/such/folder/s", UnavailableError, "gRPC cannot listen on unix:/no/such/folder/s: No such file"),
        ("unix:/" + "x" * 300, UnavailableError, "gRPC cannot listen on unix:/xxx"),
        ("unix:/dev/null", UnavailableError, "there is a file that is no socket"),
    ],
)
def test_an_unavailable_endpoint_is_refused_with_the_reason(address, kind, message):
    with pytest.raises(kind) as caught:
        endpoint(address)

    assert message in str(caught.value)


def test_a_unix_socket_in_use_is_not_taken_from_who_uses_it(tmp_path):
    with socket.socket(socket.AF_UNIX) as taken:
        taken.bind(f"{tmp_path}/s")
        taken.listen()

        with pytest.raises(UnavailableError, match="another server listens there"):
            endpoint(f"unix:{tmp_path}/s")

        assert (tmp_path / "s").is_socket()
