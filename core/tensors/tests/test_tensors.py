"""Tensors: made from arrays, lists and anything with `__dlpack__`, with the datatype that follows."""

from typing import Any

import ml_dtypes
import numpy as np
import pytest

from naiad.errors import InvalidArgumentError
from naiad_tensors.datatypes import TENSOR_TYPES, fp32_to_bf16
from naiad_tensors.tensors import DeferredPayload, Tensor, bytes_array


class OnDevice:
    """An array that shows itself by the DLPack protocol alone, as a framework's own tensors do."""

    def __init__(self, array: np.ndarray) -> None:
        self._array = array

    def __dlpack__(self, **options: Any) -> Any:
        return self._array.__dlpack__(**options)

    def __dlpack_device__(self) -> tuple[Any, int]:
        return self._array.__dlpack_device__()


def test_an_array_becomes_a_tensor_without_a_copy() -> None:
    array = np.arange(6, dtype=np.float32).reshape(2, 3)

    tensor = Tensor.of("IN", array)

    assert (tensor.name, tensor.datatype, tensor.shape) == ("IN", "FP32", (2, 3))
    assert tensor.payload is array
    assert tensor.array is array


@pytest.mark.parametrize("wire", sorted(set(TENSOR_TYPES) - {"BYTES"}))
def test_every_datatype_can_be_asked_for(wire: str) -> None:
    tensor = Tensor.of("IN", [[0, 1], [1, 0]], wire)

    assert (tensor.datatype, tensor.shape) == (wire, (2, 2))
    assert tensor.array.dtype == TENSOR_TYPES[wire].dtype


def test_foreign_byte_order_is_turned_around() -> None:
    tensor = Tensor.of("IN", np.array([1, 258], dtype=">i4"))

    assert tensor.datatype == "INT32"
    assert tensor.array.dtype == np.dtype("int32")
    assert tensor.array.tolist() == [1, 258]


def test_anything_with_dlpack_becomes_a_tensor() -> None:
    array = np.arange(4, dtype=np.int64)

    tensor = Tensor.of("IN", OnDevice(array))

    assert (tensor.datatype, tensor.shape) == ("INT64", (4,))
    assert np.shares_memory(tensor.array, array)


def test_a_tensor_over_foreign_memory_shows_it_as_an_array() -> None:
    array = np.arange(4, dtype=np.int64)

    tensor = Tensor("IN", "INT64", (2, 2), OnDevice(array))

    assert tensor.array.tolist() == [[0, 1], [2, 3]]
    assert np.shares_memory(tensor.array, array)


def test_a_tensor_offers_its_memory_by_dlpack() -> None:
    array = np.arange(4, dtype=np.float32)

    taken = np.from_dlpack(Tensor.of("OUT", array))

    assert np.shares_memory(taken, array)


class Deferred(DeferredPayload):
    """Two strings, which a worker would fetch."""

    def fetch(self) -> np.ndarray:
        return np.array([b"a", b"\0"], dtype=object)

    @property
    def nbytes(self) -> int:
        return 10


def test_a_deferred_payload_is_fetched_in_the_shape_of_the_tensor_also_of_strings() -> None:
    array = Tensor("IN", "BYTES", (2, 1), Deferred()).array

    assert array.tolist() == [[b"a"], [b"\0"]]


def test_bfloat16_becomes_bf16_bits_without_a_copy() -> None:
    array = np.array([1.0, -2.5], dtype=ml_dtypes.bfloat16)

    tensor = Tensor.of("IN", array)

    assert tensor.datatype == "BF16"
    assert tensor.array.dtype == np.uint16
    assert np.shares_memory(tensor.array, array)


def test_bf16_asked_of_floats_rounds_the_values() -> None:
    tensor = Tensor.of("IN", np.array([1.0, -2.5, 3.14], dtype=np.float32), "BF16")

    assert np.array_equal(tensor.array, fp32_to_bf16(np.array([1.0, -2.5, 3.14], dtype=np.float32)))


def test_bf16_asked_of_bits_keeps_them() -> None:
    bits = np.array([0x3F80], dtype=np.uint16)

    assert Tensor.of("IN", bits, "BF16").array is bits


@pytest.mark.parametrize(
    "value",
    [
        [b"a\0b", b"\0", b"", "ä"],
        np.array([b"a\0b", b"\0", b"", "ä"], dtype=object),
    ],
    ids=["list", "objects"],
)
def test_strings_keep_every_byte(value: Any) -> None:
    tensor = Tensor.of("IN", value)

    assert tensor.datatype == "BYTES"
    assert tensor.array.tolist() == [b"a\0b", b"\0", b"", "ä".encode()]


def test_buffers_become_bytes() -> None:
    buffers = np.empty(2, dtype=object)
    buffers[:] = [bytearray(b"a\0b"), memoryview(b"\0")]

    assert bytes_array(buffers).tolist() == [b"a\0b", b"\0"]


def test_nested_lists_of_strings_keep_their_shape() -> None:
    tensor = Tensor.of("IN", [["a", "b"], ["c", "d\0"]])

    assert tensor.shape == (2, 2)
    assert tensor.array.tolist() == [[b"a", b"b"], [b"c", b"d\0"]]


@pytest.mark.parametrize("dtype", ["S4", "U4"])
def test_numpy_text_becomes_bytes(dtype: str) -> None:
    assert bytes_array(np.array([["ab", ""]], dtype=dtype)).tolist() == [[b"ab", b""]]


def test_objects_of_other_types_become_their_text() -> None:
    assert bytes_array(np.array([1, None, 2.5], dtype=object)).tolist() == [b"1", b"None", b"2.5"]


@pytest.mark.parametrize("shape", [(0,), (2, 0), ()])
@pytest.mark.parametrize("wire", sorted(TENSOR_TYPES))
def test_tensors_may_be_empty_or_scalars(wire: str, shape: tuple[int, ...]) -> None:
    array = np.full(shape, b"x" if wire == "BYTES" else 1, dtype=TENSOR_TYPES[wire].dtype)

    tensor = Tensor.of("IN", array, wire)

    assert (tensor.datatype, tensor.shape, tensor.array.shape) == (wire, shape, shape)


def test_what_has_no_datatype_is_refused() -> None:
    with pytest.raises(InvalidArgumentError, match="arrays of dtype 'complex128' have no datatype"):
        Tensor.of("IN", [1j])
