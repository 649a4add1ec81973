"""Reading the answers of an instance, in the few words that tests need."""

import numpy as np
import pytest

from naiad._engine.responses import ResponseBuilder
from naiad.backend import Answer, Batch
from naiad.errors import ModelFailedError, NaiadError
from naiad.server import Outcome
from naiad.types import Request, Response
from naiad_config.text import parse_text

BATCHED = """
    name: "batched"
    max_batch_size: 8
    output [ { name: "X" data_type: TYPE_FP32 dims: [ 2 ] }, { name: "Y" data_type: TYPE_INT32 dims: [ -1 ] } ]
"""


def floats(*shape: int) -> np.ndarray:
    return np.arange(np.prod(shape), dtype=np.float32).reshape(shape)


def ints(*shape: int) -> np.ndarray:
    return np.arange(np.prod(shape), dtype=np.int32).reshape(shape)


def batch(*sizes: int, requested: tuple[tuple[str, ...], ...] = ()) -> Batch:
    outputs = requested or ((),) * len(sizes)
    requests = [Request("batched", {}, id=str(n), requested=names) for n, names in enumerate(outputs)]
    return Batch(requests, sizes)


def read(answer: Answer, of: Batch, config: str = BATCHED, strict: bool = True) -> list[Outcome]:
    return ResponseBuilder(parse_text(config), 3, strict).read(answer, of)


def responses(outcomes: list[Outcome]) -> list[Response]:
    assert all(isinstance(outcome, Response) for outcome in outcomes)
    return [outcome for outcome in outcomes if isinstance(outcome, Response)]


def failure(answer: Answer, of: Batch, config: str = BATCHED) -> str:
    with pytest.raises(ModelFailedError) as caught:
        read(answer, of, config)
    return str(caught.value)


def failed(outcome: Outcome) -> str:
    assert isinstance(outcome, NaiadError)
    return str(outcome)
