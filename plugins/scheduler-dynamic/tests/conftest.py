"""Dynamic batchers for the tests, made as the kernel makes them; and a loop for the tests that are coroutines."""

from collections.abc import Callable
from typing import Any

import pytest

from naiad.scheduler import Scheduler
from naiad_config import ModelConfig, ModelDynamicBatching
from naiad_scheduler_dynamic.factory import DynamicBatching
from naiad_testing.loops import coroutine_tests

pytest_pyfunc_call = coroutine_tests()


@pytest.fixture
def batcher() -> Callable[..., Scheduler]:
    """A dynamic batcher with these settings; max_batch_size is 8 unless it is given."""

    def make(*, max_batch_size: int = 8, **settings: Any) -> Scheduler:
        batching = ModelDynamicBatching(**settings)
        config = ModelConfig(name="model", max_batch_size=max_batch_size, dynamic_batching=batching)
        return DynamicBatching().create(config, instances=1)

    return make


@pytest.fixture
def batches() -> Callable[..., list[tuple[float, tuple[int, ...], str]]]:
    """The time, tickets and reason of every batch of a log."""

    def of(log: Any) -> list[tuple[float, tuple[int, ...], str]]:
        return [(sent.time, sent.tickets, sent.reason) for sent in log.sent]

    return of
