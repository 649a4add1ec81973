"""Models whose requests have something to tell of themselves."""

from pathlib import Path

from . import models

ADD = """
from naiad_custom import FP32, Array, model

@model(max_batch_size=8)
def add(x: Array[FP32, 1]) -> Array[FP32, 1]:
    return x + 1
"""
_COUNT = """
from collections.abc import Iterator

from naiad_custom import FP32, Array, model

@model
def count(x: Array[FP32, 1]) -> Iterator[Array[FP32, 1]]:
    for number in range(int(x[0])):
        yield x + number
"""
_COMPOSED = """
platform: "ensemble" max_batch_size: 8
input { name: "x" data_type: TYPE_FP32 dims: [ 1 ] }
output { name: "y" data_type: TYPE_FP32 dims: [ 1 ] }
ensemble_scheduling {
  step { model_name: "add" model_version: -1 input_map { key: "x" value: "x" } output_map { key: "output" value: "z" } }
  step {
    model_name: "cached" model_version: -1 input_map { key: "x" value: "z" } output_map { key: "output" value: "y" }
  }
}
"""


def write_all(repository: Path) -> None:
    """Write them."""
    models.write(repository, "add", ADD)
    models.write(repository, "count", _COUNT, 'backend: "python" model_transaction_policy { decoupled: true }')
    models.write(repository, "cached", ADD, 'backend: "python" response_cache { enable: true }')
    (repository / "composed" / "1").mkdir(parents=True)
    (repository / "composed" / "config.pbtxt").write_text(_COMPOSED)
