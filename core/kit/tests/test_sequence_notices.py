"""Notifying an instance that a sequence is over."""

import pytest

from naiad.backend import Answer, Batch
from naiad_kit.sequences import SequenceEndReason, notify_end


class Dreaming:
    """An instance whose notification is a coroutine."""

    def execute(self, batch: Batch) -> Answer:
        return {}

    async def sequence_ended(self, correlation_id: int | str, reason: str) -> None:
        pass

    def close(self) -> None:
        pass


def test_a_listener_that_wants_to_be_awaited_is_not_passed_over_in_silence(caplog: pytest.LogCaptureFixture) -> None:
    notify_end(7, SequenceEndReason.IDLE, Dreaming())

    assert "failed to take note that sequence 7 is over (idle)" in caplog.text
    assert "make it a plain 'def'" in caplog.text
