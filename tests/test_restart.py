"""A server starts again on the ports of one that has just ended, with clients connected to it."""

import signal
import socket
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import tritonclient.grpc as grpc
import tritonclient.http as http

from .conftest import FRONTENDS
from .written import ECHO, write_model

if TYPE_CHECKING:
    from conftest import ServerProcess


def addresses_of(server: "ServerProcess") -> dict[str, str]:
    """Where its frontends listen."""
    lines = [server.wait_for(r"(\w+) frontend listens at \S*?([\d.]+:\d+)") for _ in FRONTENDS]
    return {each.group(1): each.group(2) for each in lines}


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_a_server_starts_at_once_on_the_ports_of_one_that_has_ended_with_clients_connected(
    serve: "Callable[..., ServerProcess]", tmp_path: Path, number: signal.Signals
) -> None:
    write_model(tmp_path, "echo", ECHO, 'backend: "python"')
    first = serve(tmp_path)
    addresses = addresses_of(first)

    with ExitStack() as stack:
        for client in (http.InferenceServerClient(addresses["http"]), grpc.InferenceServerClient(addresses["grpc"])):
            assert stack.enter_context(client).is_server_live()
        for address in addresses.values():
            host, _, port = address.rpartition(":")
            stack.enter_context(socket.create_connection((host, int(port))))
        first.signal(number)
        ended = first.exit_status()
        ports = [f"--{name}-port={address.rpartition(':')[2]}" for name, address in addresses.items()]
        second = serve(tmp_path, *ports)

        assert addresses_of(second) == addresses
        assert ended == (0 if number == signal.SIGTERM else -signal.SIGKILL)
        with http.InferenceServerClient(addresses["http"]) as again:
            assert again.is_server_live()
