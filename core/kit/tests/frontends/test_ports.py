"""The error of two services that are to listen on one port names both."""

import pytest

from naiad.errors import InvalidArgumentError
from naiad_kit.frontends.ports import refuse_shared_ports

APART = {
    "allow-http": True,
    "http-address": "127.0.0.1",
    "http-port": 8000,
    "allow-grpc": True,
    "grpc-address": "0.0.0.0",
    "grpc-port": 8001,
    "reuse-http-port": True,
    "some-port": 8000,
}


def test_one_port_for_two_services_is_refused_with_both_options():
    with pytest.raises(InvalidArgumentError) as caught:
        refuse_shared_ports(APART | {"grpc-port": 8000})

    assert str(caught.value) == (
        "The server cannot listen to GRPC requests at port 8000: HTTP is to have it; "
        "choose another port with --grpc-port or --http-port"
    )


@pytest.mark.parametrize(("address", "other"), [("[::1]", "::1"), ("[::]", "127.0.0.1")])
def test_brackets_around_an_address_of_ipv6_change_nothing(address, other):
    with pytest.raises(InvalidArgumentError, match="choose another port"):
        refuse_shared_ports(APART | {"grpc-port": 8000, "grpc-address": address, "http-address": other})


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"grpc-port": 8000, "allow-grpc": False},
        {"grpc-port": 8000, "grpc-address": "127.0.0.2"},
        {"grpc-port": 8000, "grpc-address": "unix:/run/naiad.sock"},
        {"grpc-port": 0, "http-port": 0},
    ],
    ids=["apart", "off", "addresses", "unix", "any"],
)
def test_what_does_not_meet_is_let_be(changes):
    assert refuse_shared_ports(APART | changes) is None
