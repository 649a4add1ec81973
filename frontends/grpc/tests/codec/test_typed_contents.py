"""Tensors in the typed fields of `InferTensorContents`."""

import pytest

from naiad.errors import InvalidArgumentError
from naiad_tensors.datatypes import TENSOR_TYPES

VALUES = {
    "BOOL": ("bool_contents", [True, False]),
    "INT8": ("int_contents", [-128, 127]),
    "INT16": ("int_contents", [-(2**15), 2**15 - 1]),
    "INT32": ("int_contents", [-(2**31), 2**31 - 1]),
    "INT64": ("int64_contents", [-(2**63), 2**63 - 1]),
    "UINT8": ("uint_contents", [0, 255]),
    "UINT16": ("uint_contents", [0, 2**16 - 1]),
    "UINT32": ("uint_contents", [0, 2**32 - 1]),
    "UINT64": ("uint64_contents", [0, 2**64 - 1]),
    "FP32": ("fp32_contents", [0.5, float("inf")]),
    "FP64": ("fp64_contents", [0.1, -1e300]),
    "BYTES": ("bytes_contents", [b"", b"a\x00"]),
}


@pytest.mark.parametrize("datatype", VALUES)
def test_each_datatype_has_its_field(decode, ask, datatype):
    field, values = VALUES[datatype]

    request, _ = decode(ask(("X", datatype, [2, 1], {"contents": {field: values}})))

    array = request.inputs["X"].array
    assert (array.dtype, array.shape) == (TENSOR_TYPES[datatype].dtype, (2, 1))
    assert array.ravel().tolist() == values


@pytest.mark.parametrize("datatype", VALUES)
def test_elements_in_another_field_are_refused(decode, ask, datatype):
    wrong, datatype_of_field = ("fp64_contents", "FP64") if datatype != "FP64" else ("fp32_contents", "FP32")

    with pytest.raises(
        InvalidArgumentError,
        match=f"unexpected explicit tensor data for input tensor 'X' for model 'm' of type '{datatype_of_field}', "
        f"expected datatype '{datatype}'",
    ):
        decode(ask(("X", datatype, [1], {"contents": {wrong: [1]}})))


def test_elements_in_two_fields_are_refused(decode, ask):
    with pytest.raises(InvalidArgumentError, match="of type 'INT64', expected datatype 'INT8'"):
        decode(ask(("X", "INT8", [1], {"contents": {"int_contents": [1], "int64_contents": [1]}})))


@pytest.mark.parametrize("datatype", ["FP16", "BF16"])
def test_halves_have_no_field(decode, ask, datatype):
    with pytest.raises(
        InvalidArgumentError, match=f"no field for datatype '{datatype}'. Please use raw_input_contents"
    ):
        decode(ask(("X", datatype, [1], {"contents": {"fp32_contents": [1]}})))


@pytest.mark.parametrize(
    ("datatype", "value"), [("INT8", 128), ("INT8", -129), ("INT16", 2**15), ("UINT8", 256), ("UINT16", 2**16)]
)
def test_a_number_out_of_range_is_refused(decode, ask, datatype, value):
    field, _ = VALUES[datatype]

    with pytest.raises(InvalidArgumentError, match=f"input 'X' has the value {value}, but {datatype} goes from"):
        decode(ask(("X", datatype, [2], {"contents": {field: [0, value]}})))


@pytest.mark.parametrize("values", [[1], [1, 2, 3], []])
def test_the_number_of_elements_must_be_that_of_the_shape(decode, ask, values):
    with pytest.raises(InvalidArgumentError, match=f"for input 'X' for model 'm'. Expected 8, got {len(values) * 4}"):
        decode(ask(("X", "FP32", [2], {"contents": {"fp32_contents": values}})))


def test_the_number_of_strings_must_be_that_of_the_shape(decode, ask):
    with pytest.raises(InvalidArgumentError, match=r"expected 2 string elements .* 'X' .*, got 1"):
        decode(ask(("X", "BYTES", [2], {"contents": {"bytes_contents": [b"a"]}})))


def test_contents_without_elements_are_those_of_a_tensor_without_any(decode, ask):
    assert decode(ask(("X", "FP32", [0, 3], {"contents": {}})))[0].inputs["X"].array.shape == (0, 3)


def test_all_inputs_may_be_typed(decode, ask):
    message = ask(
        ("A", "INT8", [1], {"contents": {"int_contents": [1]}}),
        ("B", "FP64", [1], {"contents": {"fp64_contents": [2]}}),
    )

    assert [each.array.tolist() for each in decode(message)[0].inputs.values()] == [[1], [2]]


def test_typed_contents_beside_raw_ones_are_refused(decode, ask):
    message = ask(("A", "INT8", [1]), ("B", "INT8", [1], {"contents": {"int_contents": [1]}}), raw=[b"1"])

    with pytest.raises(
        InvalidArgumentError,
        match="contents field must not be specified when using raw_input_contents for 'B' for model 'm'",
    ):
        decode(message)


def test_an_input_without_anything_beside_typed_ones_is_refused(decode, ask):
    message = ask(("A", "INT8", [1], {"contents": {"int_contents": [1]}}), ("B", "INT8", [1]))

    with pytest.raises(InvalidArgumentError, match="input tensor 'B'"):
        decode(message)


def test_typed_elements_may_be_unpacked_and_in_several_pieces(decoder):
    contents = b"\x10\x01" + b"\x12\x02\x02\x03"  # int_contents: one unpacked, then two packed
    tensor = b"\x0a\x01X\x12\x04INT8\x18\x03" + b"\x2a\x02" + contents[:2] + b"\x2a\x04" + contents[2:]
    message = b"\x0a\x01m" + b"\x2a" + bytes([len(tensor)]) + tensor

    assert decoder.decode(message)[0].inputs["X"].array.tolist() == [1, 2, 3]


def test_typed_contents_are_not_remembered(decoder, ask):
    decoder.decode(ask(("A", "INT8", [1], {"contents": {"int_contents": [1]}})).SerializeToString())

    assert decoder._templates == {}
