"""Places to listen: TCP sockets that are bound, unix sockets that are left over, and the errors of others."""

import asyncio
import socket
from pathlib import Path

import pytest

from naiad.errors import InvalidArgumentError
from naiad_kit.frontends.addresses import bind_tcp, cannot_listen, host_of, is_left_over, unix_path


def bound(port: int = 0, share: bool = False, address: str = "127.0.0.1") -> socket.socket:
    return asyncio.run(bind_tcp(address, port, "x-address", share))


def test_a_socket_is_bound_but_takes_no_clients_yet() -> None:
    with bound() as listening:
        address, port = listening.getsockname()

        assert address == "127.0.0.1"
        with pytest.raises(ConnectionRefusedError):
            socket.create_connection((address, port))


def test_an_address_of_ipv6_may_be_in_brackets() -> None:
    with bound(address="[::1]") as listening:
        assert listening.getsockname()[0] == "::1"


def test_a_taken_port_is_shared_only_with_who_allows_it() -> None:
    with socket.create_server(("127.0.0.1", 0), reuse_port=True) as taken:
        port = taken.getsockname()[1]

        with pytest.raises(OSError, match="in use"):
            bound(port)
        with bound(port, share=True) as listening:
            assert listening.getsockname()[1] == port


def test_an_invalid_address_is_refused_with_its_option() -> None:
    with pytest.raises(InvalidArgumentError, match="--x-address: 'no host' is not an address of this machine"):
        bound(address="no host")


def test_a_unix_socket_needs_a_path() -> None:
    assert unix_path("unix:/run/s", "x-address") == Path("/run/s")
    with pytest.raises(InvalidArgumentError, match="--x-address: 'unix:' is without a path"):
        unix_path("unix:", "x-address")


def test_only_the_socket_of_a_server_that_has_ended_is_left_over(tmp_path: Path) -> None:
    path = tmp_path / "s"
    nothing = is_left_over(path)
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(path))
        server.listen()
        with pytest.raises(FileExistsError, match="another server listens there"):
            is_left_over(path)

    assert (nothing, is_left_over(path)) == (False, True)


@pytest.mark.parametrize("kind", ["file", "link to a socket"])
def test_what_is_no_socket_is_not_left_over(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "s"
    if kind == "file":
        path.write_text("precious")
    else:
        with socket.socket(socket.AF_UNIX) as server:
            server.bind(str(tmp_path / "of another"))
        path.symlink_to(tmp_path / "of another")

    with pytest.raises(FileExistsError, match="a file that is not a socket is there"):
        is_left_over(path)


@pytest.mark.parametrize("error", ["it is taken", OSError(98, "it is taken")])
def test_an_address_that_cannot_be_bound_is_refused_with_the_options(error: OSError | str) -> None:
    of_tcp, of_unix = (str(cannot_listen("gRPC", address, 7, error)) for address in ("::1", "unix:/s"))

    assert of_tcp.startswith("gRPC cannot listen on ::1 port 7: it is taken; choose another port with --grpc-port (0 ")
    assert of_tcp.endswith("another address with --grpc-address")
    assert of_unix == "gRPC cannot listen on unix:/s: it is taken; choose another path with --grpc-address"


def test_an_address_of_ipv6_stands_in_brackets_before_a_port() -> None:
    assert [host_of(address) for address in ("127.0.0.1", "::1")] == ["127.0.0.1", "[::1]"]
