"""Nets of Caffe2 go through the conformance suite of backends."""

import numpy as np
import onnxruntime
import pytest

import naiad_caffe2
import naiad_scheduler_dynamic
from naiad_caffe2.backend import Caffe2Backend
from naiad_testing.backend_suite import DATATYPES, BackendSuite, SuiteModel, backend_cases
from naiad_testing.workbench import tensor_entry

from .nets import Net

BATCHED = "max_batch_size: 8\n"


def model(net: Net, inputs: str, outputs: str, config: str) -> SuiteModel:
    net.gives(*outputs.split())
    return SuiteModel(
        lambda workbench: net.write(workbench.path("model.netdef")),
        tuple(inputs.split()),
        tuple(outputs.split()),
        config,
    )


def add_sub() -> SuiteModel:
    net = Net("A", "B")
    net.op("Add", "A B", "SUM")
    net.op("Sub", "A B", "DIFFERENCE")
    inputs = "".join(tensor_entry("input", name, "FP32", "4") for name in ("A", "B"))
    return model(net, "A B", "SUM DIFFERENCE", 'platform: "caffe2_netdef" ' + BATCHED + inputs)


def identity_of(datatype: str, dims: str) -> SuiteModel:
    net = Net("x")
    net.op("Copy", "x", "y")
    return model(net, "x", "y", BATCHED + tensor_entry("input", "x", datatype, dims))


def lookup() -> SuiteModel:
    net = Net("row")
    net.weights("table", np.arange(10, 14, dtype=np.float32))
    net.op("Gather", "table row", "y")
    return model(net, "row", "y", BATCHED + tensor_entry("input", "row", "INT32", "1"))


def sequence() -> SuiteModel:
    net = Net("x", "start", "state")
    net.weights("one", np.ones(1, np.float32))
    net.op("Sub", "one start", "goes_on", broadcast=1)
    net.op("Mul", "state goes_on", "old")
    net.op("Add", "old x", "y")
    net.op("Copy", "y", "new")
    config = """
        max_batch_size: 4
        input { name: "x" data_type: TYPE_FP32 dims: [ 1 ] }
        sequence_batching {
          control_input { name: "start" control { kind: CONTROL_SEQUENCE_START fp32_false_true: [ 0, 1 ] } }
          state { input_name: "state" output_name: "new" data_type: TYPE_FP32 dims: [ 1 ] }
        }
    """
    return model(net, "x start state", "y new", config)


def ragged() -> SuiteModel:
    net = Net("x", "lengths")
    net.op("LengthsSum", "x lengths", "flat")
    net.op("ExpandDims", "flat", "sums", dims=[1])
    config = """
        input { name: "x" data_type: TYPE_FP32 dims: [ -1 ] allow_ragged_batch: true }
        batch_input { kind: BATCH_ELEMENT_COUNT target_name: "lengths" data_type: TYPE_INT32 source_input: "x" }
    """
    return model(net, "x", "sums", BATCHED + config)


SUITE = BackendSuite(
    Caffe2Backend(),
    plugin="naiad_caffe2",
    frameworks=("onnxruntime", "onnx"),
    file="model.netdef",
    served_with=[naiad_caffe2, naiad_scheduler_dynamic],
    describes_tensors=False,
    gpu_here="CUDAExecutionProvider" in onnxruntime.get_available_providers(),
    datatypes=[each for each in DATATYPES if each not in ("UINT32", "UINT64", "BF16", "BYTES")],
    lookup_datatype="INT32",
    add_sub=add_sub(),
    identity=identity_of,
    lookup=lookup(),
    sequence=sequence(),
    ragged=ragged(),
)


@pytest.mark.parametrize("case", backend_cases(SUITE), ids=str)
def test_the_backend_conforms(case, tmp_path):
    case.check(tmp_path)
