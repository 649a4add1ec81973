"""String tensors: conversion between numpy object arrays and OpenVINO, with memory linear in the bytes.

OpenVINO's Python interface takes and gives strings only as numpy's fixed-width arrays, in which each element takes the
room of the longest: 1,000 elements, one of them of 1 MB, are 1 GB. So a tensor is filled and read in slices, each over
elements of about the same length.
"""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from naiad.errors import InvalidArgumentError
from naiad_openvino.runtime import runtime

_SLACK = 64 << 10
"""Bytes that a slice may take beyond twice its strings: filling one costs 5 µs, whatever is in it."""
_READ_TOGETHER = 16
"""Elements that are read together: their lengths are known only afterwards, so they may take 16 times the longest."""


def tensor_of(array: np.ndarray, name: str, model: str) -> Any:
    """A string tensor with a copy of the elements.

    Raises InvalidArgumentError for an element that OpenVINO's Python interface cannot hold.
    """
    elements = array.ravel().tolist()
    if any(element.endswith(b"\0") for element in elements):
        raise InvalidArgumentError(
            f"input '{name}' of model '{model}' has an element that ends in a zero byte, which OpenVINO's Python "
            "interface would drop; send such bytes as UINT8"
        )
    openvino = runtime()
    tensor = openvino.Tensor(openvino.Type.string, [len(elements)])
    for start, stop in slices(list(map(len, elements))):
        openvino.Tensor(tensor, [start], [stop]).bytes_data = np.array(elements[start:stop], dtype=bytes)
    tensor.shape = list(array.shape)
    return tensor


def array_of(tensor: Any) -> np.ndarray:
    """The elements of a string tensor as an object array of `bytes`."""
    tensor_type = runtime().Tensor
    array = np.empty(list(tensor.shape), dtype=object)
    if not array.size:
        return array  # which OpenVINO reads out of bounds
    if array.size <= _READ_TOGETHER:
        _fill(array, tensor)
        return array
    for begin, end in _blocks(array.shape):
        _fill(array[tuple(map(slice, begin, end))], tensor_type(tensor, begin, end))
    return array


def _fill(array: np.ndarray, tensor: Any) -> None:
    values = tensor.bytes_data
    if (
        values.ndim and values.strides[-1] == 0
    ):  # all are empty: OpenVINO writes to no memory, and one byte of it is read
        array.fill(b"")
    else:
        array.flat[:] = values.ravel().tolist()


def _blocks(shape: Sequence[int]) -> Iterator[tuple[list[int], list[int]]]:
    """Where blocks of at most `_READ_TOGETHER` elements begin and end that cover a tensor of that shape."""
    axis, within = len(shape) - 1, 1
    while axis > 0 and within * shape[axis] <= _READ_TOGETHER:
        within *= shape[axis]
        axis -= 1
    step = max(1, _READ_TOGETHER // within)
    for outer in np.ndindex(*shape[:axis]):
        for start in range(0, shape[axis], step):
            stop = min(start + step, shape[axis])
            begin = [*outer, start, *[0] * (len(shape) - axis - 1)]
            yield begin, [*(each + 1 for each in outer), stop, *shape[axis + 1 :]]


def slices(lengths: Sequence[int]) -> Iterator[tuple[int, int]]:
    """Cuts strings of these lengths into slices that take little more as fixed-width arrays than their bytes."""
    start = longest = total = 0
    for index, length in enumerate(lengths):
        if (index + 1 - start) * max(longest, length) > 2 * (total + length) + _SLACK:
            yield start, index
            start, longest, total = index, 0, 0
        longest = max(longest, length)
        total += length
    if start < len(lengths):
        yield start, len(lengths)
