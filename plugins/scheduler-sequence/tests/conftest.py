"""Sequence batchers for the tests, made as the kernel makes them; histories as words; a loop for coroutines."""

import re
from collections.abc import Callable
from typing import Any

import pytest

from naiad.scheduler import Scheduler
from naiad_config import (
    ModelConfig,
    ModelSequenceBatching,
    ModelTransactionPolicy,
    SequenceState,
    StrategyDirect,
    StrategyOldest,
)
from naiad_scheduler_sequence.factory import SequenceBatching
from naiad_testing.history import Arrival, Log
from naiad_testing.loops import coroutine_tests

MS = 1e-3


pytest_pyfunc_call = coroutine_tests()


def _batcher(
    batching: dict[str, Any],
    max_batch_size: int,
    instances: int,
    idle_ms: int,
    iterative: bool,
    decoupled: bool,
    stateful: bool,
) -> Scheduler:
    config = ModelConfig(
        name="model",
        max_batch_size=max_batch_size,
        model_transaction_policy=ModelTransactionPolicy(decoupled=decoupled),
        sequence_batching=ModelSequenceBatching(
            **batching,
            max_sequence_idle_microseconds=idle_ms * 1000,
            iterative_sequence=iterative,
            state=(SequenceState(input_name="BEFORE", output_name="AFTER"),) if stateful else (),
        ),
    )
    return SequenceBatching().create(config, instances)


@pytest.fixture
def direct() -> Callable[..., Scheduler]:
    """A batcher with the direct strategy and these settings; 2 slots on 1 instance unless more is said."""

    def make(
        slots: int = 2,
        instances: int = 1,
        idle_ms: int = 1000,
        iterative: bool = False,
        decoupled: bool = False,
        stateful: bool = False,
        **settings: Any,
    ) -> Scheduler:
        return _batcher(
            {"direct": StrategyDirect(**settings)}, slots, instances, idle_ms, iterative, decoupled, stateful
        )

    return make


@pytest.fixture
def oldest() -> Callable[..., Scheduler]:
    """A batcher with the oldest strategy and these settings; batches of 2 on 1 instance unless more is said."""

    def make(
        max_batch_size: int = 2,
        instances: int = 1,
        idle_ms: int = 1000,
        iterative: bool = False,
        decoupled: bool = False,
        stateful: bool = False,
        **settings: Any,
    ) -> Scheduler:
        strategy = StrategyOldest(**{"max_candidate_sequences": 4, **settings})
        return _batcher({"oldest": strategy}, max_batch_size, instances, idle_ms, iterative, decoupled, stateful)

    return make


@pytest.fixture
def story() -> Callable[..., list[Arrival]]:
    """Requests from words such as `5:A+`: at 5 ms, of sequence A, its first; `-` marks the last. `5:7` has a number.

    Fields of arrivals may be given by word: `story("0:A+ 5:A-", {"5:A-": {"leaves": 0.01}})`.
    """

    def arrivals(words: str, more: dict[str, dict[str, Any]] | None = None) -> list[Arrival]:
        arrivals = []
        for word in words.split():
            parts = re.fullmatch(r"([\d.]+):(\w+)(\+?)(-?)", word)
            assert parts, word
            time, name, start, end = parts.groups()
            fields = {"sequence_id": int(name) if name.isdigit() else name, **(more or {}).get(word, {})}
            arrivals.append(Arrival(float(time) * MS, sequence_start=bool(start), sequence_end=bool(end), **fields))
        return arrivals

    return arrivals


@pytest.fixture
def played() -> Callable[[Log], list[str]]:
    """Every batch of a log in words: `5: 1[A+ . B-]` is one at 5 ms on instance 1; row 1 has no request."""

    def of(log: Log) -> list[str]:
        lines = []
        for sent in log.sent:
            words = [
                f"{log.arrival_of(row.ticket).sequence_id}{'+' * row.start}{'-' * row.end}" if row.ticket else "."
                for row in sent.rows
            ]
            lines.append(f"{sent.time / MS:g}: {sent.instance}[{' '.join(words)}]")
        return lines

    return of
