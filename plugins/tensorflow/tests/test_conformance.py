"""TensorFlow's SavedModels go through the conformance suite of backends."""

from pathlib import Path
from typing import Any

import pytest

import naiad_scheduler_dynamic
import naiad_tensorflow
import naiad_warmup
from naiad_tensorflow.backend import TensorFlowBackend
from naiad_testing.backend_suite import BackendSuite, SuiteModel, backend_cases

from .conftest import accumulator, add_sub, identity, look_up, ragged

SAVED = "model.savedmodel"
DTYPES = {"FP16": "float16", "FP32": "float32", "FP64": "float64", "BF16": "bfloat16", "BYTES": "string"}
RAGGED = """
    max_batch_size: 8
    input { name: "IN" data_type: TYPE_FP32 dims: [ -1 ] allow_ragged_batch: true }
    batch_input { kind: BATCH_ACCUMULATED_ELEMENT_COUNT_WITH_ZERO target_name: "OFFSETS" data_type: TYPE_INT32
                  source_input: "IN" }
    output { name: "SUM" data_type: TYPE_FP32 dims: [ 1 ] }
"""


def model(make: Any, inputs: str, outputs: str, config: str = "", *arguments: Any) -> SuiteModel:
    return SuiteModel(
        lambda workbench: make(workbench.path(SAVED), *arguments), tuple(inputs.split()), tuple(outputs.split()), config
    )


def identity_of(datatype: str, dims: str) -> SuiteModel:
    return model(identity, "x", "y", "", DTYPES.get(datatype, datatype.lower()), None if dims == "-1" else int(dims))


SUITE = BackendSuite(
    TensorFlowBackend(),
    plugin="naiad_tensorflow",
    frameworks=("tensorflow",),
    file=SAVED,
    parameter="TF_SIGNATURE_DEF",
    served_with=[naiad_tensorflow, naiad_scheduler_dynamic, naiad_warmup],
    gpu_here=Path("/dev/nvidiactl").exists(),
    add_sub=model(add_sub, "a b", "sum difference", 'platform: "tensorflow_savedmodel"\n', 4),
    identity=identity_of,
    lookup=model(look_up, "x", "y"),
    sequence=model(
        accumulator,
        "x start state",
        "out state_out",
        """
        max_batch_size: 4
        sequence_batching {
          control_input { name: "start" control { kind: CONTROL_SEQUENCE_START fp32_false_true: [ 0, 1 ] } }
          state { input_name: "state" output_name: "state_out" data_type: TYPE_FP32 dims: [ 1 ] }
        }
        """,
    ),
    ragged=model(ragged, "IN", "SUM", RAGGED),
)


@pytest.mark.parametrize("case", backend_cases(SUITE), ids=str)
def test_the_backend_conforms(case, tmp_path):
    case.check(tmp_path)
