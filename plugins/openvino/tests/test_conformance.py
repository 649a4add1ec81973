"""OpenVINO models go through the conformance suite of backends."""

from typing import Any

import pytest

import naiad_openvino
import naiad_scheduler_dynamic
import naiad_warmup
from naiad_openvino.backend import OpenVinoBackend
from naiad_testing.backend_suite import BackendSuite, SuiteModel, backend_cases

from .conftest import Zoo, write

KINDS = {"BOOL": "boolean", "FP16": "f16", "FP32": "f32", "FP64": "f64", "BF16": "bf16", "BYTES": "string"}


def model(make: Any, inputs: str, outputs: str, config: str = "") -> SuiteModel:
    return SuiteModel(lambda workbench: write(workbench, make()), tuple(inputs.split()), tuple(outputs.split()), config)


def identity_of(datatype: str, dims: str) -> SuiteModel:
    if dims != "-1":
        return model(lambda: Zoo().positive((-1, int(dims))), "IN", "OUT")
    kind = KINDS.get(datatype) or datatype.lower().replace("uint", "u").replace("int", "i")
    return model(lambda: Zoo().identity(kind, (-1, -1)), "IN", "OUT")


SUITE = BackendSuite(
    OpenVinoBackend(),
    plugin="naiad_openvino",
    frameworks=("openvino",),
    file="model.xml",
    parameter="HINT_BF16",
    served_with=[naiad_openvino, naiad_scheduler_dynamic, naiad_warmup],
    add_sub=model(lambda: Zoo().add_sub((-1, 4)), "A B", "SUM DIFFERENCE"),
    identity=identity_of,
    sequence=model(
        lambda: Zoo().accumulator(),
        "IN START STATE",
        "OUT STATE_OUT",
        """
        max_batch_size: 4
        sequence_batching {
          control_input { name: "START" control { kind: CONTROL_SEQUENCE_START fp32_false_true: [ 0, 1 ] } }
          state { input_name: "STATE" output_name: "STATE_OUT" data_type: TYPE_FP32 dims: [ 1 ] }
        }
        """,
    ),
)


@pytest.mark.parametrize("case", backend_cases(SUITE), ids=str)
def test_the_backend_conforms(case, tmp_path):
    case.check(tmp_path)
