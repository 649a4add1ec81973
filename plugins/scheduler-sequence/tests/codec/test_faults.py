"""A fault of the server while it takes a batch of sequences back: requests end, the slot comes back."""

import pytest

from naiad.errors import InternalError
from naiad_kit.sequences import Row

from .driven import Drive, summing


async def test_a_batch_that_cannot_be_taken_back_fails_and_gives_its_slot_back(
    drive: Drive, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    driven = await drive()
    driven.submit("a", 1, who=1)
    driven.submit("b", 2, who=2)
    await driven.decide(Row(1, 1, start=True), Row(2, 2, start=True))

    def broken(row: object) -> None:
        raise LookupError("no such state")

    with monkeypatch.context() as patched:
        patched.setattr(driven.sequences._live, "carry", broken)
        driven.answer(summing)

    for name in ("a", "b"):
        assert isinstance(driven.error(name), InternalError)
        assert "was lost: LookupError" in str(driven.error(name))
    assert "taking back a batch" in caplog.text
    driven.submit("c", 5, who=3, sequence_start=True)
    await driven.decide(Row(3, 3, start=True))
    driven.answer(summing)
    assert driven.value("c") == 5
