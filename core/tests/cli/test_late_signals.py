"""Signals that come when there is nothing left to stop."""

import asyncio
import signal

import pytest

from naiad._kernel.cli.serving import _stop_signal


@pytest.fixture
def handlers():
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


def test_a_signal_after_the_event_loop_has_ended_changes_nothing(handlers):
    async def serve():
        return _stop_signal(30.0)

    stop = asyncio.run(serve())
    signal.raise_signal(signal.SIGTERM)

    assert not stop.is_set()
