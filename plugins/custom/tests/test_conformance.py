"""The backend `python` passes the checks that every backend is held against."""

import numpy as np
import pytest

from naiad_custom.backend import PythonBackend
from naiad_tensors.datatypes import TENSOR_TYPES, fp32_to_bf16
from naiad_testing.backend_suite import DATATYPES
from naiad_testing.backends import BackendCase, check_backend, check_imports_no_framework

FUNCTION = """
    from naiad_custom import FP32, Array, model

    @model(max_batch_size=4, outputs="Y")
    {kind} double(X: Array[FP32, 2]) -> Array[FP32, 2]:
        return X * 2
"""

CLASS = """
    from naiad_custom import FP32, Array, model

    @model(max_batch_size=4, outputs="Y")
    class Double:
        def load(self, context):
            self.factor = 2

        def execute(self, X: Array[FP32, 2]) -> Array[FP32, 2]:
            return X * self.factor
"""

TRITON = """
    import triton_python_backend_utils as pb_utils

    class TritonPythonModel:
        @staticmethod
        def auto_complete_config(config):
            config.set_max_batch_size(4)
            config.add_input({"name": "X", "data_type": "TYPE_FP32", "dims": [2]})
            config.add_output({"name": "Y", "data_type": "TYPE_FP32", "dims": [2]})
            return config

        def execute(self, requests):
            inputs = [pb_utils.get_input_tensor_by_name(request, "X").as_numpy() for request in requests]
            return [pb_utils.InferenceResponse([pb_utils.Tensor("Y", each * 2)]) for each in inputs]
"""


@pytest.mark.parametrize(
    "code",
    [FUNCTION.format(kind="def"), FUNCTION.format(kind="async def"), CLASS, TRITON],
    ids=["function", "async function", "class", "triton"],
)
def test_every_kind_of_model_keeps_the_contract(folder, code):
    case = BackendCase(
        folder.write(code),
        requests=[{"X": [[1, 2]]}, {"X": [[3, 4], [5, 6]]}, {"X": [[7, 8]]}],
        expected=[{"Y": [[2, 4]]}, {"Y": [[6, 8], [10, 12]]}, {"Y": [[14, 16]]}],
    )

    check_backend(PythonBackend(), case)


ECHO = """
    from naiad_custom import {datatype}, Array, model

    @model(max_batch_size=4, outputs="Y")
    def echo(X: Array[{datatype}, -1]) -> Array[{datatype}, -1]:
        return X
"""


@pytest.mark.parametrize("datatype", DATATYPES)
def test_every_datatype_passes_unchanged(folder, datatype):
    rows = [[[b"a", b"\xff\0", b""]], [[b"", b"b" * 300, b"c"]]] if datatype == "BYTES" else [[[1, 0, 1]], [[0, 1, 1]]]
    requests = [{"X": np.array(each, object if datatype == "BYTES" else np.float32)} for each in rows]
    if datatype not in ("BYTES", "BF16"):
        requests = [{"X": each["X"].astype(TENSOR_TYPES[datatype].dtype)} for each in requests]
    expected = [{"Y": fp32_to_bf16(each["X"]) if datatype == "BF16" else each["X"]} for each in requests]

    check_backend(PythonBackend(), BackendCase(folder.write(ECHO.format(datatype=datatype)), requests, expected))


STREAM = """
    from collections.abc import AsyncIterator, Iterator
    from naiad_custom import FP32, Array, model

    @model(max_batch_size=4, outputs="Y")
    {kind} double(X: Array[FP32, 2]) -> {annotation}[Array[FP32, 2]]:
        yield X
        yield X * 2
"""

TRITON_STREAM = """
    import triton_python_backend_utils as pb_utils

    class TritonPythonModel:
        @staticmethod
        def auto_complete_config(config):
            config.set_max_batch_size(4)
            config.add_input({{"name": "X", "data_type": "TYPE_FP32", "dims": [2]}})
            config.add_output({{"name": "Y", "data_type": "TYPE_FP32", "dims": [2]}})
            config.set_model_transaction_policy({{"decoupled": True}})
            return config

        {kind} execute(self, requests):
            for request in requests:
                sender, x = request.get_response_sender(), request.inputs()[0].as_numpy()
                for factor in (1, 2):
                    sender.send(pb_utils.InferenceResponse([pb_utils.Tensor("Y", x * factor)]))
                sender.send(flags=pb_utils.TRITONSERVER_RESPONSE_COMPLETE_FINAL)
"""


@pytest.mark.parametrize(
    "code",
    [
        STREAM.format(kind="def", annotation="Iterator"),
        STREAM.format(kind="async def", annotation="AsyncIterator"),
        TRITON_STREAM.format(kind="def"),
        TRITON_STREAM.format(kind="async def"),
    ],
    ids=["function", "async function", "triton", "async triton"],
)
def test_every_kind_of_model_that_streams_keeps_the_contract(folder, code):
    case = BackendCase(
        folder.write(code),
        requests=[{"X": [[1, 2]]}, {"X": [[3, 4], [5, 6]]}, {"X": [[7, 8]]}],
        expected=[
            [{"Y": [[1, 2]]}, {"Y": [[2, 4]]}],
            [{"Y": [[3, 4], [5, 6]]}, {"Y": [[6, 8], [10, 12]]}],
            [{"Y": [[7, 8]]}, {"Y": [[14, 16]]}],
        ],
    )

    check_backend(PythonBackend(), case)


def test_the_plugin_imports_no_framework():
    check_imports_no_framework("naiad_custom", "torch", "tensorflow", "onnxruntime")
