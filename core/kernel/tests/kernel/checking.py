"""Checking requests against a configuration, in the few words that tests need."""

from typing import Any

import numpy as np
import pytest

from naiad._engine.admission import RequestValidator
from naiad.errors import InvalidArgumentError
from naiad.types import Request
from naiad_config.text import parse_text
from naiad_tensors.tensors import Tensor

PLAIN = """
    name: "plain"
    input { name: "A" data_type: TYPE_FP32 dims: [ 2, -1 ] }
    output [ { name: "X" data_type: TYPE_FP32 dims: [ -1 ] }, { name: "Y" data_type: TYPE_FP32 dims: [ -1 ] } ]
"""


BATCHED = """
    name: "batched"
    max_batch_size: 4
    input [ { name: "A" data_type: TYPE_FP32 dims: [ 2 ] }, { name: "B" data_type: TYPE_INT32 dims: [ -1 ] } ]
    output { name: "X" data_type: TYPE_FP32 dims: [ 2 ] }
"""


OPTIONAL = """
    name: "optional"
    max_batch_size: 4
    input [
      { name: "A" data_type: TYPE_FP32 dims: [ 1 ] },
      { name: "B" data_type: TYPE_FP32 dims: [ 1 ] optional: true },
      { name: "C" data_type: TYPE_FP32 dims: [ -1 ] optional: true }
    ]
"""


def checker(config: str) -> RequestValidator:
    return RequestValidator(parse_text(config))


def request(requested: tuple[str, ...] = (), priority: int = 0, timeout: int = 0, **inputs: Any) -> Request:
    tensors = {name: Tensor.of(name, value) for name, value in inputs.items()}
    return Request("m", tensors, requested=requested, priority=priority, timeout_microseconds=timeout)


def floats(*shape: int) -> np.ndarray:
    return np.zeros(shape, dtype=np.float32)


def ints(*shape: int) -> np.ndarray:
    return np.zeros(shape, dtype=np.int32)


def refusal(config: str, bad: Request) -> str:
    with pytest.raises(InvalidArgumentError) as caught:
        checker(config).check(bad)
    return str(caught.value)
