"""Sockets of the server in a forked child."""

import os
import socket
from collections.abc import Callable, Sequence
from pathlib import Path

from naiad_kit.frontends.forking import keep_from_children


def in_child(check: Callable[[], bool]) -> bool:
    """Whether the check holds in a forked child."""
    child = os.fork()
    if not child:
        held = False
        try:
            held = check()
        finally:
            os._exit(not held)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def target_of(opened: socket.socket) -> str:
    return str(Path(f"/proc/self/fd/{opened.fileno()}").readlink())


def are_closed(sockets: Sequence[socket.socket]) -> Callable[[], bool]:
    return lambda: all(target_of(each) == os.devnull for each in sockets)


def are_open(sockets: Sequence[socket.socket]) -> Callable[[], bool]:
    return lambda: all(target_of(each).startswith("socket:") for each in sockets)


def test_a_child_has_neither_the_listening_socket_nor_its_connections() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        port = listening.getsockname()[1]
        end = keep_from_children(port)
        with socket.create_connection(("127.0.0.1", port)) as client, listening.accept()[0] as accepted:
            assert in_child(are_closed([listening, accepted]))
            assert in_child(are_open([client]))
            assert are_open([listening, accepted])()
        end()


def test_a_child_has_no_unix_socket_of_the_server(tmp_path: Path) -> None:
    path = str(tmp_path / "socket")
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(path)
        listening.listen()
        end = keep_from_children(path)
        assert in_child(are_closed([listening]))
        end()


def test_other_sockets_stay_open_in_a_child() -> None:
    with socket.create_server(("127.0.0.1", 0)) as ours, socket.create_server(("127.0.0.1", 0)) as other:
        end = keep_from_children(ours.getsockname()[1])
        assert in_child(are_open([other]))
        end()


def test_an_endpoint_that_was_given_back_stays_open_in_a_child() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        keep_from_children(listening.getsockname()[1])()

        assert in_child(are_open([listening]))
