"""Requests: plain ones, and those that Triton's client library makes from numpy arrays."""

from typing import Any

import numpy as np
import tritonclient.http as triton

A = np.arange(8, dtype=np.float32).reshape(2, 4)
B = np.full((2, 4), 0.5, np.float32)
KINDS = ("custom", "triton", "onnx")
"""How the models `<kind>_add_sub` are written."""
ECHO = "/v2/models/echo/infer"
ONE: dict[str, Any] = {"inputs": [{"name": "x", "datatype": "FP32", "shape": [1], "data": [1]}]}
"""A request to a model of the input `x` of one dimension."""
ROW: dict[str, Any] = {"inputs": [{"name": "x", "datatype": "FP32", "shape": [1, 1], "data": [1]}]}
"""The same with a batch dimension."""


def tensor(name: str, array: np.ndarray, datatype: str = "FP32", binary: bool = True) -> triton.InferInput:
    """An input with that array."""
    tensor = triton.InferInput(name, list(array.shape), datatype)
    tensor.set_data_from_numpy(array, binary_data=binary)
    return tensor


def sums(binary: bool = True) -> list[triton.InferInput]:
    """The inputs A and B of the models that add and subtract."""
    return [tensor("A", A, binary=binary), tensor("B", B, binary=binary)]


def output_named(*names: str, **how: Any) -> list[triton.InferRequestedOutput]:
    """Outputs to ask for."""
    return [triton.InferRequestedOutput(name, **how) for name in names]
