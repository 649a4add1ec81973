"""The conformance check of kinds of worker passes the kernel's, and finds what is broken."""

import asyncio
from typing import Any

import pytest

from naiad.backend import BackendTraits
from naiad.workers import ThreadWorker
from naiad_config import ModelConfig
from naiad_testing.workers import ContractBroken, FakeItem, check_workers


class Kind:
    """A kind that makes these workers."""

    name = choice = "mine"

    def __init__(self, worker: Any) -> None:
        self._worker = worker

    def worker_for(self, config: ModelConfig, traits: BackendTraits, execute_on: str) -> Any:
        return self._worker


class Forgetful(ThreadWorker[FakeItem]):
    """Loses the batches that it had in flight when it dies."""

    def fail_in_flight(self, reason: str) -> None:
        self.in_flight.clear()
        super().fail_in_flight(reason)


class Twice(ThreadWorker[FakeItem]):
    """Hands each batch back twice."""

    def arrived(self, item: FakeItem) -> None:
        super().arrived(item)
        self.host.done(item)


def test_a_thread_keeps_the_contract() -> None:
    asyncio.run(check_workers(Kind(ThreadWorker)))


def test_a_kind_that_takes_no_plain_model_cannot_be_checked() -> None:
    with pytest.raises(ContractBroken, match="to others"):
        asyncio.run(check_workers(Kind(None)))


@pytest.mark.parametrize(("worker", "broken"), [(Forgetful, "exactly once"), (Twice, "another order, or twice")])
def test_broken_workers_are_found(worker: Any, broken: str) -> None:
    with pytest.raises(ContractBroken, match=broken):
        asyncio.run(check_workers(Kind(worker)))
