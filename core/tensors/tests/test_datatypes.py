"""The tensor datatypes: their names, sizes and numpy dtypes, and the conversions of BF16."""

import math

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from naiad.errors import InvalidArgumentError
from naiad_config import DataType
from naiad_tensors.datatypes import TENSOR_TYPES, bf16_to_fp32, fp32_to_bf16, tensor_type, wire_name, wire_name_of

ITEMSIZES = {
    "BOOL": 1,
    "UINT8": 1,
    "UINT16": 2,
    "UINT32": 4,
    "UINT64": 8,
    "INT8": 1,
    "INT16": 2,
    "INT32": 4,
    "INT64": 8,
    "FP16": 2,
    "FP32": 4,
    "FP64": 8,
    "BYTES": 0,
    "BF16": 2,
}


def test_the_table_has_every_datatype_of_the_protocol() -> None:
    assert {name: kind.itemsize for name, kind in TENSOR_TYPES.items()} == ITEMSIZES


@pytest.mark.parametrize("wire", ITEMSIZES)
def test_a_datatype_is_the_same_by_its_wire_name_and_by_its_configured_name(wire: str) -> None:
    kind = tensor_type(wire)

    assert wire_name(kind.config) == wire
    assert kind.config.name == ("TYPE_STRING" if wire == "BYTES" else f"TYPE_{wire}")


@pytest.mark.parametrize("wire", sorted(set(ITEMSIZES) - {"BYTES", "BF16"}))
def test_a_numpy_dtype_names_its_datatype_in_either_byte_order(wire: str) -> None:
    dtype = tensor_type(wire).dtype

    assert wire_name_of(dtype) == wire
    assert wire_name_of(dtype.newbyteorder(">")) == wire


def test_every_kind_of_text_is_bytes() -> None:
    assert {wire_name_of(np.dtype(name)) for name in ("O", "S3", "U7")} == {"BYTES"}


def test_the_bfloat16_of_ml_dtypes_is_bf16() -> None:
    assert wire_name_of(np.dtype(ml_dtypes.bfloat16)) == "BF16"


@pytest.mark.parametrize("dtype", ["complex64", "datetime64[s]", [("x", "int32")]])
def test_a_dtype_without_datatype_is_refused_with_what_there_is(dtype: object) -> None:
    with pytest.raises(InvalidArgumentError, match=r"no datatype in the protocol; convert to one of BOOL, .*BF16"):
        wire_name_of(np.dtype(dtype))  # type: ignore[call-overload]


def test_an_unknown_datatype_is_refused_with_what_there_is() -> None:
    with pytest.raises(InvalidArgumentError, match=r"unknown datatype 'FP12'; the datatypes are BF16, BOOL, BYTES"):
        tensor_type("FP12")


def test_the_invalid_datatype_is_none() -> None:
    assert DataType.TYPE_INVALID not in [kind.config for kind in TENSOR_TYPES.values()]


@given(st.floats(width=32))
def test_bf16_rounds_as_the_reference_does(value: float) -> None:
    values = np.array([value], dtype=np.float32)

    bits = fp32_to_bf16(values)

    with np.errstate(over="ignore"):
        expected = values.astype(ml_dtypes.bfloat16).view(np.uint16)
    assert np.array_equal(bits, expected) or (math.isnan(value) and np.isnan(bf16_to_fp32(bits)).all())


@given(st.integers(0, 0xFFFF))
def test_bf16_comes_back_from_fp32_unchanged(pattern: int) -> None:
    bits = np.array([pattern], dtype=np.uint16)

    back = fp32_to_bf16(bf16_to_fp32(bits))

    assert np.array_equal(back, bits) or np.isnan(bf16_to_fp32(bits)).all()


@pytest.mark.parametrize("shape", [(), (0,), (3,), (2, 0, 4), (2, 3)])
def test_bf16_keeps_the_shape(shape: tuple[int, ...]) -> None:
    values = np.full(shape, 1.5, dtype=np.float32)

    bits = fp32_to_bf16(values)

    assert (bits.shape, bits.dtype) == (shape, np.uint16)
    assert (bf16_to_fp32(bits).shape, bf16_to_fp32(bits).dtype) == (shape, np.float32)


def test_bf16_of_a_scalar_nan_is_nan() -> None:
    every_bit = np.array(0xFFFFFFFF, dtype=np.uint32).view(np.float32)

    assert np.isnan(bf16_to_fp32(fp32_to_bf16(every_bit)))


def test_bf16_takes_arrays_that_are_not_contiguous() -> None:
    values = np.arange(12, dtype=np.float32).reshape(3, 4).T[::2]

    assert np.array_equal(bf16_to_fp32(fp32_to_bf16(values)), values)
