"""Tensors on the command line: what may be written, what goes over the wire, what is printed."""

import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from naiad.errors import InvalidArgumentError
from naiad_cli.tensors import from_wire, outputs_of, parameter, read_tensor, shown, to_wire
from naiad_tensors.datatypes import TENSOR_TYPES


@pytest.mark.parametrize(
    ("text", "datatype", "shape", "expected"),
    [
        ("1,2,3,4", "FP32", [-1, 4], [[1, 2, 3, 4]]),
        ("1 2 3 4", "INT8", [-1, 2], [[1, 2], [3, 4]]),
        ("1,2,3,4,5,6", "INT64", [-1, 3, -1], [[[1, 2], [3, 4], [5, 6]]]),
        ("[[1, 2], [3, 4]]", "FP64", [-1, 2], [[1, 2], [3, 4]]),
        ("true,false", "BOOL", [2], [True, False]),
        ("1.5", "FP16", [1], [1.5]),
        ("", "FP32", [-1], []),
        ("7", "UINT64", [], 7),
    ],
)
def test_values_take_the_shape_of_the_model(text: str, datatype: str, shape: list[int], expected: object) -> None:
    array = read_tensor("x", text, datatype, shape)

    assert array.dtype == TENSOR_TYPES[datatype].dtype
    assert array.tolist() == expected


def test_text_is_one_string_and_a_json_list_is_many() -> None:
    one = read_tensor("x", "a, b", "BYTES", [-1, 1])
    many = read_tensor("x", '["a", "b"]', "BYTES", [-1, 1])

    assert (one.tolist(), many.tolist()) == ([[b"a, b"]], [[b"a"], [b"b"]])


def test_text_that_ends_as_the_name_of_a_file_takes_the_shape_of_the_model_too() -> None:
    assert read_tensor("x", "photo.npy", "BYTES", [-1, 1]).tolist() == [[b"photo.npy"]]


def test_bf16_is_sent_as_its_bits() -> None:
    array = read_tensor("x", "1,-2", "BF16", [2])

    assert array.tolist() == [0x3F80, 0xC000]


def test_files_of_numpy_and_json_are_read(tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", np.arange(4.0).reshape(2, 2))
    (tmp_path / "x.json").write_text("[[0, 1], [2, 3]]")

    tensors = [read_tensor("x", f"@{tmp_path}/x.{kind}", "FP32", [-1, 2]).tolist() for kind in ("npy", "json")]

    assert tensors == [[[0, 1], [2, 3]]] * 2


@pytest.mark.parametrize(
    ("text", "datatype", "message"),
    [
        ("1,2,3", "FP32", "has 3 values, which do not fill the shape [2]"),
        ("1,x", "FP32", "cannot be read from '1,x': 'x' is not a number"),
        ("1,1e39", "FP32", "a value does not fit into FP32"),
        ("[1,", "FP32", "'[1,' is not valid JSON"),
        ("1,300", "INT8", "a value does not fit into INT8"),
        ("1,2.5", "INT32", "a value does not fit into INT32"),
        ("[[1], [2, 3]]", "FP32", "lists of unequal length"),
        ("@no/such.npy", "FP32", "No such file"),
        ("@x.txt", "FP32", "give a .npy or a .json file"),
    ],
)
def test_what_is_no_such_tensor_is_refused_by_the_name_of_the_input(text: str, datatype: str, message: str) -> None:
    with pytest.raises(InvalidArgumentError, match="input 'x'") as caught:
        read_tensor("x", text, datatype, [2])

    assert message in str(caught.value)


FIXED_SIZE = sorted(name for name, kind in TENSOR_TYPES.items() if kind.itemsize)


@st.composite
def fixed_size_arrays(draw: st.DrawFn) -> tuple[str, np.ndarray]:
    """A datatype and an array of it, of any shape and with any bits."""
    datatype = draw(st.sampled_from(FIXED_SIZE))
    return datatype, draw(arrays.arrays(TENSOR_TYPES[datatype].dtype, arrays.array_shapes(min_dims=0, min_side=0)))


@given(fixed_size_arrays())
def test_tensors_come_back_from_the_wire_as_they_went(case: tuple[str, np.ndarray]) -> None:
    datatype, sent = case

    received = from_wire(to_wire(sent), datatype, sent.shape)

    assert (received.dtype, received.shape) == (sent.dtype, sent.shape)
    assert received.tobytes() == sent.tobytes()


@given(st.lists(st.binary(max_size=5), max_size=5))
def test_strings_come_back_from_the_wire_as_they_went(elements: list[bytes]) -> None:
    sent = np.empty(len(elements), dtype=object)
    sent[:] = elements

    received = from_wire(to_wire(sent), "BYTES", [len(elements)])

    assert received.tolist() == elements


@pytest.mark.parametrize(("chunk", "datatype"), [(b"123", "FP32"), (b"\x05\x00\x00", "BYTES"), (b"", "BYTES")])
def test_an_output_of_the_wrong_length_is_refused(chunk: bytes, datatype: str) -> None:
    with pytest.raises(InvalidArgumentError, match="output cannot be read"):
        from_wire(chunk, datatype, [1])


def test_outputs_may_be_binary_or_json_in_one_answer() -> None:
    answer = {
        "outputs": [
            {"name": "a", "datatype": "INT32", "shape": [1], "parameters": {"binary_data_size": 4}},
            {"name": "b", "datatype": "BYTES", "shape": [1, 2], "data": ["x", "y"]},
            {"name": "c", "datatype": "INT32", "shape": [1], "parameters": {"binary_data_size": 4}},
        ]
    }

    outputs = outputs_of(answer, b"\x01\0\0\0\x02\0\0\0")

    assert [(name, datatype, array.tolist()) for name, datatype, array in outputs] == [
        ("a", "INT32", [1]),
        ("b", "BYTES", [[b"x", b"y"]]),
        ("c", "INT32", [2]),
    ]


def test_values_are_shown_as_people_write_them() -> None:
    strings = np.array([b"caf\xc3\xa9", b"\xff"], dtype=object)

    recorded = [
        shown(np.array([0x3F80], dtype=np.uint16), "BF16"),
        shown(strings, "BYTES"),
        shown(np.arange(3), "INT64"),
    ]

    assert recorded == ["[1.]", "['café', b'\\xff']", "[0, 1, 2]"]


@pytest.mark.parametrize("value", [True, 3, 1.5, "plain", "[1]", "null"])
def test_a_parameter_is_what_its_text_says(value: bool | int | float | str) -> None:
    text = value if isinstance(value, str) else json.dumps(value)

    read = parameter(text)

    assert (type(read), read) == (type(value), value)
