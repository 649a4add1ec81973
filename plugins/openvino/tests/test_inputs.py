"""OpenVINO uses the memory of large inputs as it is, and must not write to it: others read it, too."""

from collections.abc import Callable
from typing import Any

import numpy as np
import openvino
import openvino.opset13 as ops
import pytest

_ELEMENTS = 1 << 14

OPERATIONS: dict[str, Callable[[Any], Any]] = {
    "relu": ops.relu,
    "reshape": lambda x: ops.relu(ops.reshape(x, ops.constant(np.array([2, -1])), False)),
    "split": lambda x: ops.concat([ops.exp(half) for half in ops.split(x, 0, 2).outputs()], 0),
    "scatter": lambda x: ops.scatter_update(
        x, ops.constant(np.arange(4)), ops.constant(np.full(4, 5, np.float32)), ops.constant(0)
    ),
    "chain": lambda x: ops.exp(ops.multiply(ops.add(x, ops.constant(np.float32(1))), ops.constant(np.float32(2)))),
}


@pytest.mark.parametrize("operation", OPERATIONS)
def test_operations_that_could_work_in_location_leave_the_input_as_it_is(workbench, operation):
    parameter = ops.parameter(openvino.PartialShape([_ELEMENTS]), openvino.Type.f32)
    parameter.output(0).get_tensor().set_names({"IN"})
    result = OPERATIONS[operation](parameter)
    result.output(0).get_tensor().set_names({"OUT"})
    workbench.write(openvino.Model([result], [parameter], "model"))
    before = np.linspace(-1, 1, _ELEMENTS, dtype=np.float32)
    received = np.frombuffer(before.tobytes(), np.float32)

    loaded = workbench.load()
    loaded.execute({"IN": received})
    loaded.execute({"IN": received})

    assert np.array_equal(received, before)
