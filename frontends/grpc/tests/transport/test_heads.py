"""Heads of calls that both transports read alike: content types and timeouts, as clients write them and should not."""

import asyncio

import pytest

from ..connections.conftest import client_of, message
from .conftest import Calls, Served


def status_of(run, *further):
    """The status of a call with these further fields of its head."""

    async def main():
        async with Served(Calls()) as served, client_of(served) as client:
            return (await client.status(client.begin("/t/echo", message(b"x"), *further)))[0]

    return run(asyncio.wait_for(main(), 30))


@pytest.mark.parametrize(
    ("timeout", "status"),
    [
        (b"0S", b"4"),
        (b"0n", b"4"),
        (b"99999999H", b"0"),
        *((text, b"13") for text in (b"", b"S", b"5", b"5s", b"-1S", b"1.5S", b"5SS", "١S".encode())),
    ],
)
def test_a_timeout_of_nothing_has_passed_a_huge_one_has_not_and_a_malformed_one_is_an_error(run, timeout, status):
    assert status_of(run, (b"grpc-timeout", timeout)) == status
