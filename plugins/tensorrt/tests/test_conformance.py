"""Engines go through the conformance suite of backends, on a machine with a pretended GPU."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from naiad_tensorrt.backend import TensorRtBackend
from naiad_testing.backend_suite import BackendSuite, SuiteModel, backend_cases

from .conftest import FakeMachine, add_sub, described, tensor

MACHINE = FakeMachine()
TABLE = np.array([10, 11, 12, 13], np.float32)
SEQUENCES = """
    sequence_batching {
      control_input { name: "START" control { kind: CONTROL_SEQUENCE_START fp32_false_true: [ 0, 1 ] } }
      state { input_name: "sum" output_name: "new_sum" data_type: TYPE_FP32 dims: 1 }
    }
"""
RAGGED = """
    max_batch_size: 8
    input { name: "x" data_type: TYPE_FP32 dims: -1 allow_ragged_batch: true }
    batch_input { kind: BATCH_ACCUMULATED_ELEMENT_COUNT target_name: "ends" data_type: TYPE_FP32 source_input: "x" }
"""


def model(description: Any, compute: Callable[..., Any], config: str = "", hidden: str = "") -> SuiteModel:
    """An engine of these tensors; `hidden` are inputs that the server fills from the others."""

    def write(workbench: Any) -> None:
        MACHINE.description, MACHINE.compute = description, compute
        workbench.path("model.plan").write_bytes(b"ftrt and more")

    inputs = [each.name for each in description.tensors if each.is_input and each.name not in hidden.split()]
    return SuiteModel(
        write, tuple(inputs), tuple(each.name for each in description.tensors if not each.is_input), config
    )


def floats(names: str, dims: tuple[int, ...], output: bool = False) -> list[Any]:
    return [tensor(name, *dims, output=output) for name in names.split()]


def accumulate(inputs: Any) -> dict[str, Any]:
    total = inputs["x"] + inputs["sum"] * (1 - inputs["START"])
    return {"y": total, "new_sum": total}


def sums(inputs: Any) -> dict[str, Any]:
    parts = np.split(inputs["x"], inputs["ends"].astype(int)[:-1])
    return {"total": np.array([[part.sum()] for part in parts], np.float32)}


SUITE = BackendSuite(
    TensorRtBackend(MACHINE),
    plugin="naiad_tensorrt",
    frameworks=("tensorrt_rtx_bindings", "tensorrt_lean_bindings", "cuda"),
    file="model.plan",
    parameter="weight_streaming_budget",
    gpus=1,
    gpu_here=True,
    served_with=(),
    add_sub=model(
        described(*floats("A B", (-1, 4)), *floats("SUM DIFF", (-1, 4), output=True)), add_sub, "max_batch_size: 8\n"
    ),
    lookup=model(
        described(tensor("x", -1, 1, kind="INT64"), tensor("y", -1, 1, output=True)),
        lambda inputs: {"y": TABLE[inputs["x"]]},
    ),
    sequence=model(
        described(*floats("x START sum", (-1, 1)), *floats("y new_sum", (-1, 1), output=True)), accumulate, SEQUENCES
    ),
    ragged=model(
        described(*floats("x ends", (-1,)), tensor("total", -1, 1, output=True), batches=[(1, 4, 64)]),
        sums,
        RAGGED,
        hidden="ends",
    ),
)


@pytest.mark.parametrize("case", backend_cases(SUITE), ids=str)
def test_the_backend_conforms(case, tmp_path):
    case.check(tmp_path)
