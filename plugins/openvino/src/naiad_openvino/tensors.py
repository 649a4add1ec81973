"""Tensors: conversion between numpy arrays and OpenVINO, without a copy wherever alignment allows."""

from types import SimpleNamespace
from typing import Any

import numpy as np

from naiad_openvino import strings
from naiad_openvino.runtime import runtime

_WORTH_SHARING = 16_384
"""Bytes from which on an array is not copied: making OpenVINO use its memory costs 2 µs, which copying these takes."""


def to_input(array: np.ndarray, kind: str, name: str, model: str) -> Any:
    """The input of that element type, without a copy where its memory can be used as it is.

    OpenVINO copies what is read-only, as the body of a request is, though it does not write to inputs. Raises
    InvalidArgumentError for a string that it cannot hold.
    """
    if kind == "string":
        return strings.tensor_of(array, name, model)
    if not (array.flags.aligned and array.flags.c_contiguous):
        array = np.array(array, order="C")
    elif not array.flags.writeable:
        array = _alias(array) if array.nbytes >= _WORTH_SHARING else array.copy()
    if kind == "bf16":
        openvino = runtime()
        return openvino.Tensor(array, list(array.shape), openvino.Type.bf16)
    return array


def read_output(request: Any, index: int, kind: str) -> np.ndarray:
    """An output of that element type, copied: the next execution writes to the memory that it is in."""
    tensor = request.get_output_tensor(index)
    if kind == "string":
        return strings.array_of(tensor)
    copied: np.ndarray = tensor.data.copy()
    return copied.view(np.uint16) if kind == "bf16" else copied


class OutputMemory:
    """The memory of one output whose shape is known before: each execution gets some of its own to write to."""

    def __init__(self, port: Any) -> None:
        self._shape = list(port.shape)
        self._type = port.element_type
        self._dtype = np.dtype(
            np.uint16 if port.element_type.get_type_name() == "bf16" else port.element_type.to_dtype()
        )

    @classmethod
    def of(cls, port: Any) -> "OutputMemory | None":
        """That of an output, None where its shape varies, or where copying is as fast."""
        kind = port.element_type
        if port.partial_shape.is_dynamic or kind.get_type_name() == "string":
            return None
        return cls(port) if port.tensor.size >= _WORTH_SHARING else None

    def provide(self, request: Any, index: int) -> np.ndarray:
        """New memory, which the request's next execution writes that output to."""
        array = np.empty(self._shape, self._dtype)
        request.set_output_tensor(index, runtime().Tensor(array, self._shape, self._type))
        return array


def _alias(array: np.ndarray) -> np.ndarray:
    """The same memory as an array that says that it may be written to."""
    interface = {**array.__array_interface__, "data": (array.__array_interface__["data"][0], False)}
    return np.asarray(SimpleNamespace(__array_interface__=interface, kept=array))
