"""The codec of sequences holds to the contract of codecs, with either strategy, controls and states."""

from pathlib import Path

import numpy as np
import pytest

from naiad.backend import RESCHEDULE, Answer, Batch, ModelContext, Reply
from naiad.errors import ModelFailedError
from naiad.types import Request
from naiad_config.text import read_text
from naiad_scheduler_sequence.factory import SequenceBatching
from naiad_tensors.tensors import Tensor
from naiad_testing.codecs import check_codec

from .driven import CONTROLS, SUM, config_of


def context_of(config: str) -> ModelContext:
    return ModelContext(read_text(config, file="").config, 1, Path("/nowhere"), Path("/nowhere/1"))


def request_of(sequence: int, start: bool, end: bool) -> Request:
    tensor = Tensor.of("X", np.ones((1, 1), np.int32))
    return Request("m", {"X": tensor}, correlation_id=sequence, sequence_start=start, sequence_end=end)


class Model:
    """Adds X to the sum of its sequence; every seventh batch fails, and with `steps` every other execution goes on."""

    def __init__(self, states: bool, steps: bool = False) -> None:
        self._states = states
        self._steps = steps
        self._batches = 0

    def __call__(self, batch: Batch) -> Answer:
        self._batches += 1
        if self._batches % 7 == 0:
            raise ModelFailedError("the seventh batch")
        x = batch.input("X")
        outputs = {"Y": x, "SUM_OUT": x + batch.input("SUM_IN")} if self._states else {"Y": x}
        if self._steps and self._batches % 2:
            return [RESCHEDULE for _ in batch.requests]
        return [Reply({name: array[row : row + 1] for name, array in outputs.items()}) for row in range(len(x))]


@pytest.mark.parametrize("strategy", ["direct { }", "oldest { max_candidate_sequences: 3 }"])
@pytest.mark.parametrize("states", [False, True])
def test_the_codec_of_sequences_keeps_the_contract(strategy: str, states: bool) -> None:
    config = config_of(CONTROLS + (SUM if states else "") + strategy)

    check_codec(SequenceBatching(), context_of(config), request_of, Model(states))


def test_the_codec_of_iterative_models_keeps_the_contract() -> None:
    config = config_of(CONTROLS + SUM + "iterative_sequence: true")

    check_codec(SequenceBatching(), context_of(config), request_of, Model(states=True, steps=True))
