"""States of models that answer after their execution has returned: the next request starts from what the last left."""

import asyncio
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from naiad import Server
from naiad.backend import Answer, Batch, Reply, Sender
from naiad_testing.loops import until

from .serving import Listening, ask, number, request, serving

DECOUPLED = "model_transaction_policy { decoupled: true }"


class Later:
    """Adds up as `summing` does, but answers when a test says so; `seen` is which sequence started from which sum."""

    def __init__(self) -> None:
        self.seen: list[tuple[int | str, int]] = []
        self._answers: list[tuple[Sender, np.ndarray]] = []

    def __call__(self, batch: Batch) -> Answer:
        for index, each in enumerate(batch.requests):
            if each.correlation_id:  # a row with a request
                before = each.inputs["SUM_IN"].array
                self._answers.append((batch.sender(index), each.inputs["X"].array + before))
                self.seen.append((each.correlation_id, int(before[0, 0])))
        return [None] * len(batch.requests)

    def answer(self, at: int = 0) -> None:
        """One of those that were executed."""
        sender, total = self._answers.pop(at)
        sender.send(Reply({"Y": total, "SUM_OUT": total}), final=True)


async def streamed(server: Server, value: int, who: int | str = 7, flags: str = "") -> int:
    """Y in the only response of a stream."""
    (response,) = [each async for each in server.stream(request(value, who, flags))]
    return number(response)


@pytest.mark.parametrize("strategy", ["direct { }", "oldest { max_candidate_sequences: 4 }"])
@pytest.mark.parametrize(("policy", "send"), [("", ask), (DECOUPLED, streamed)])
async def test_a_request_waits_for_the_state_that_an_earlier_one_has_still_to_send(
    tmp_path: Path, strategy: str, policy: str, send: Callable[..., Coroutine[Any, Any, int]]
) -> None:
    later = Later()
    async with serving(tmp_path, Listening(later), strategy, policy) as server:
        first = asyncio.ensure_future(send(server, 1, flags="start"))
        await until(lambda: later.seen)
        second = asyncio.ensure_future(send(server, 2, flags="end"))
        await asyncio.sleep(0)
        other = asyncio.ensure_future(send(server, 30, who=8, flags="start end"))
        await until(lambda: len(later.seen) == 2)
        later.answer()
        await until(lambda: len(later.seen) == 3)
        later.answer()
        later.answer()

        assert await asyncio.gather(first, second, other) == [1, 3, 30]

    assert later.seen == [(7, 0), (8, 0), (7, 1)]
