"""Notifications to systemd: what each datagram says, and where it goes."""

import socket
from collections.abc import Iterator
from pathlib import Path
from uuid import uuid4

import pytest

from naiad_cli.systemd import take_notifier


def listening(address: str) -> socket.socket:
    """A socket of datagrams at that address."""
    receiver = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    receiver.settimeout(10.0)
    receiver.bind(address)
    return receiver


@pytest.fixture
def receiver(tmp_path: Path) -> Iterator[socket.socket]:
    with listening(str(tmp_path / "notify")) as each:
        yield each


def test_each_state_is_a_datagram_with_a_status(receiver: socket.socket) -> None:
    notifier = take_notifier({"NOTIFY_SOCKET": receiver.getsockname()})

    notifier.status("loading")
    notifier.ready("serves")
    notifier.stopping("stopping")

    assert [receiver.recv(4096) for _ in range(3)] == [
        b"STATUS=loading",
        b"READY=1\nSTATUS=serves",
        b"STOPPING=1\nSTATUS=stopping",
    ]


def test_the_name_of_an_abstract_socket_begins_with_an_at_sign() -> None:
    name = f"naiad-tests-{uuid4()}"
    with listening(f"\0{name}") as receiver:
        take_notifier({"NOTIFY_SOCKET": f"@{name}"}).ready("serves")

        assert receiver.recv(4096) == b"READY=1\nSTATUS=serves"


def test_a_status_is_sent_once_in_one_line_that_systemd_takes(receiver: socket.socket) -> None:
    notifier = take_notifier({"NOTIFY_SOCKET": receiver.getsockname()})

    notifier.status("waiting for a\nREADY=1")
    notifier.status("waiting for a READY=1")
    notifier.status("m" * 5000)

    assert receiver.recv(8192) == b"STATUS=waiting for a READY=1"
    assert receiver.recv(8192) == b"STATUS=" + b"m" * 500


def test_a_path_that_is_no_text_does_not_end_the_server(receiver: socket.socket) -> None:
    notifier = take_notifier({"NOTIFY_SOCKET": receiver.getsockname()})

    notifier.ready("serves /models/\udcff")

    assert receiver.recv(4096) == b"READY=1\nSTATUS=serves /models/?"


def test_the_variable_is_gone_from_the_environment_of_other_processes(receiver: socket.socket) -> None:
    environment = {"NOTIFY_SOCKET": receiver.getsockname(), "PATH": "/bin"}

    assert take_notifier(environment).is_used
    assert environment == {"PATH": "/bin"}


@pytest.mark.parametrize("environment", [{}, {"NOTIFY_SOCKET": ""}, {"NOTIFY_SOCKET": "vsock:2:1234"}])
def test_without_a_socket_nothing_happens(environment: dict[str, str], caplog: pytest.LogCaptureFixture) -> None:
    notifier = take_notifier(environment)

    notifier.ready("serves")

    assert not notifier.is_used
    assert caplog.text == ""


def test_a_socket_that_is_not_there_is_named_once(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    notifier = take_notifier({"NOTIFY_SOCKET": str(tmp_path / "missing")})

    notifier.ready("serves")
    notifier.stopping("stopping")

    assert [record.levelname for record in caplog.records] == ["WARNING"]
    assert f"systemd cannot be notified at '{tmp_path / 'missing'}'" in caplog.text
    assert "No such file or directory" in caplog.text
