"""The notice of a server that strangers can reach."""

import pytest

from naiad_cli.exposure import exposure

OPEN = {
    "allow-http": True,
    "http-address": "0.0.0.0",
    "http-restricted-api": (),
    "allow-grpc": True,
    "grpc-address": "0.0.0.0",
    "grpc-restricted-protocol": (),
    "model-control-mode": "none",
}
LOCAL = {"http-address": "127.0.0.1", "grpc-address": "[::1]"}
RESTRICTED = {
    "http-restricted-api": ("model-repository:key=secret",),
    "grpc-restricted-protocol": ("model-repository:key=secret",),
}


def test_an_open_server_says_where_and_what_strangers_may_do() -> None:
    notice = exposure({**OPEN, "model-control-mode": "explicit"})

    assert "HTTP at 0.0.0.0 and gRPC at 0.0.0.0" in notice
    assert "load and unload models" in notice
    assert "docs/security.md" in notice


@pytest.mark.parametrize(
    "changes",
    [
        LOCAL,
        RESTRICTED,
        {"http-address": "localhost", "grpc-address": "unix:/run/naiad.sock"},
        {"allow-http": False, "allow-grpc": False},
        {"allow-http": False, "grpc-address": "::1"},
    ],
)
def test_a_server_that_is_local_or_restricted_says_nothing(changes: dict[str, object]) -> None:
    assert exposure({**OPEN, **changes}) == ""


def test_only_the_open_frontend_is_named() -> None:
    notice = exposure({**OPEN, "grpc-address": "127.0.0.1", "http-address": "example.org"})

    assert "HTTP at example.org may" in notice
    assert "--http-address=127.0.0.1 keeps the server" in notice


def test_frontends_that_are_not_installed_do_not_count() -> None:
    http_alone = {name: value for name, value in OPEN.items() if "grpc" not in name}

    notice = exposure(http_alone)

    assert exposure({"model-control-mode": "none"}) == ""
    assert "HTTP at 0.0.0.0 may" in notice
    assert "grpc" not in notice.lower()


def test_a_server_that_needs_keys_has_nothing_to_say() -> None:
    assert exposure(OPEN, has_keys=True) == ""
