"""ONNX models go through the conformance suite of backends."""

from typing import Any

import onnxruntime
import pytest
from onnx import TensorProto

import naiad_onnx
import naiad_scheduler_dynamic
import naiad_warmup
from naiad_onnx.backend import OnnxBackend
from naiad_testing.backend_suite import BackendSuite, SuiteModel, backend_cases

from .conftest import RAGGED, accumulator, add_sub, gather, identity, ragged, with_default

ELEMENTS = {"BYTES": "STRING", "FP16": "FLOAT16", "FP32": "FLOAT", "FP64": "DOUBLE", "BF16": "BFLOAT16"}


def model(proto: Any, inputs: str, outputs: str, config: str = "") -> SuiteModel:
    def write(workbench: Any) -> None:
        workbench.path("model.onnx").write_bytes(proto.SerializeToString())

    return SuiteModel(write, tuple(inputs.split()), tuple(outputs.split()), config)


def identity_of(datatype: str, dims: str) -> SuiteModel:
    element = TensorProto.DataType.Value(ELEMENTS.get(datatype, datatype))
    return model(identity(["n", "k" if dims == "-1" else int(dims)], element), "IN", "OUT")


SUITE = BackendSuite(
    OnnxBackend(),
    plugin="naiad_onnx",
    frameworks=("onnxruntime", "onnx"),
    file="model.onnx",
    parameter="intra_op_thread_count",
    text_only=True,
    served_with=[naiad_onnx, naiad_scheduler_dynamic, naiad_warmup],
    gpu_here="CUDAExecutionProvider" in onnxruntime.get_available_providers(),
    add_sub=model(add_sub(("n", 4)), "A B", "SUM DIFFERENCE"),
    identity=identity_of,
    lookup=model(gather(), "INDEX", "OUT"),
    sequence=model(
        accumulator(),
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
    ragged=model(ragged(), "IN", "SUM", RAGGED),
    optional=model(with_default(), "IN SCALE", "OUT", 'input [ { name: "IN" }, { name: "SCALE", optional: true } ]'),
)


@pytest.mark.parametrize("case", backend_cases(SUITE), ids=str)
def test_the_backend_conforms(case, tmp_path):
    case.check(tmp_path)
