"""Cancellation in the process of a model, where the links of cancellations and of batches have a thread each."""

from collections.abc import Sequence
from typing import Any

from naiad.types import Request
from naiad_process_workers.executor import Executions


class LateRequests(dict[int, Sequence[Request]]):
    """The requests of batches; batch 1 comes right after it was looked up for the first time."""

    def __init__(self, executions: Executions, requests: Sequence[Request]) -> None:
        super().__init__()
        self._executions = executions
        self._late = [requests]

    def get(self, key: int, default: Any = None) -> Any:
        known = super().get(key, default)
        while self._late:
            self._executions.begin(1, self._late.pop())
        return known


def test_a_request_is_cancelled_whose_batch_comes_at_the_same_moment() -> None:
    executions, requests = Executions(), [Request("m", {}), Request("m", {})]
    executions.requests = LateRequests(executions, requests)

    executions.cancel(1, 1)

    assert [request.cancelled for request in requests] == [False, True]


def test_a_request_is_cancelled_whose_batch_comes_later() -> None:
    executions, requests = Executions(), [Request("m", {}), Request("m", {})]

    executions.cancel(1, 1)
    executions.begin(1, requests)

    assert [request.cancelled for request in requests] == [False, True]


def test_a_cancellation_that_comes_while_early_ones_are_taken_does_no_harm() -> None:
    requests, executions = [Request("m", {}), Request("m", {})], Executions()
    executions.cancel(1, 0)
    early = executions.cancelled_early[1]
    requests[0].on_cancelled = lambda: early.add(1)  # as the control thread does amid that

    executions.begin(1, requests)

    assert requests[0].cancelled
