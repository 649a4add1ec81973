"""Responses become JSON and buffers that share memory with the model's arrays."""

import json

import numpy as np
import orjson
import pytest

from naiad.errors import InvalidArgumentError, TooLargeError
from naiad.types import Response
from naiad_http.codec import Encoder, OutputForm, ResponseForm
from naiad_http.codec.responses import LARGE_ELEMENTS, LargeOutput, json_content
from naiad_tensors.datatypes import wire_name_of
from naiad_tensors.laid_out import ArrayLayout, LaidOutArrays
from naiad_tensors.tensors import Tensor

BINARY = ResponseForm(OutputForm(binary=True))
JSON = ResponseForm()


def encoder(batched=True, labels=()):
    return Encoder(lambda model, version: batched, lambda model, output, version: labels)


def response(*tensors, **members):
    return Response("m", 1, members.pop("id", ""), {each.name: each for each in tensors}, **members)


def encode(*tensors, form=JSON, **members):
    encoded = encoder().encode(response(*tensors, **members), form)
    return orjson.loads(encoded.text), encoded


def test_a_response_as_json_is_flat():
    document, encoded = encode(Tensor.of("Y", np.array([[1, 2], [3, 4]], np.int32)), id="42", parameters={"k": 1.5})

    assert document == {
        "id": "42",
        "model_name": "m",
        "model_version": "1",
        "parameters": {"k": 1.5},
        "outputs": [{"name": "Y", "datatype": "INT32", "shape": [2, 2], "data": [1, 2, 3, 4]}],
    }
    assert (encoded.buffers, encoded.size) == ([], 0)


def test_an_id_and_parameters_are_there_only_when_set():
    document, _ = encode(Tensor.of("Y", np.zeros(1, np.int8)))

    assert list(document) == ["model_name", "model_version", "outputs"]


ARRAYS = {
    "numbers": {"Y": np.array([[1.5, -2]], np.float32), "Z": np.arange(3, dtype=np.uint8)},
    "quotes and percents": {'a"%b': np.zeros(1, np.int64), "100%": np.ones(2, np.float64)},
    "not finite": {"Y": np.array([np.nan, np.inf, -np.inf, 0.1], np.float64)},
    "booleans": {"Y": np.array([True, False])},
    "longest": {"Y": np.full(4096, -128, np.int8)},
    "a column": {"Y": np.arange(6, dtype=np.int32).reshape(2, 3)[:, 1]},
    "scalar and nothing": {"Y": np.array(7, np.uint64), "Z": np.empty((0, 3), np.float32)},
    "large": {"Y": np.arange(2000, dtype=np.float64)},
    "no outputs": {},
}


@pytest.mark.parametrize("form", [JSON, BINARY, ResponseForm(outputs={"Y": OutputForm()})])
@pytest.mark.parametrize("arrays", ARRAYS.values(), ids=ARRAYS)
def test_laid_out_arrays_are_encoded_as_tensors_are(arrays, form):
    fields = [(name, wire_name_of(each.dtype), each.dtype, each.shape) for name, each in arrays.items()]
    laid_out = Response("m%", 1, "", LaidOutArrays(ArrayLayout(fields), list(arrays.values())))
    tensors = Response("m%", 1, "", {name: Tensor.of(name, each) for name, each in arrays.items()})

    encoded, expected = (encoder().encode(each, form) for each in (laid_out, tensors))

    assert encoded.text == expected.text
    assert b"".join(map(bytes, encoded.buffers)) == b"".join(map(bytes, expected.buffers))
    assert encoded.size == expected.size


def test_laid_out_arrays_that_json_cannot_carry_are_refused_as_tensors_are():
    def laid_out(array):
        layout = ArrayLayout([("Y", wire_name_of(array.dtype), array.dtype, array.shape)])
        return Response("m", 1, "", LaidOutArrays(layout, [array]))

    with pytest.raises(InvalidArgumentError, match="FP16 data via JSON"):
        encoder().encode(laid_out(np.zeros(1, np.float16)), JSON)
    with pytest.raises(TooLargeError, match="maximum of 100 bytes"):
        Encoder(lambda *_: True, lambda *_: (), 100).encode(laid_out(np.zeros(100, np.int8)), JSON)


def test_binary_outputs_follow_in_order_with_their_sizes():
    first, second = np.arange(3, dtype=np.float32), np.array([b"ab", b"\x00"], dtype=object)

    document, encoded = encode(Tensor.of("A", first), Tensor.of("B", second), form=BINARY)

    assert [each["parameters"]["binary_data_size"] for each in document["outputs"]] == [12, 11]
    assert b"".join(encoded.buffers) == first.tobytes() + b"\x02\x00\x00\x00ab\x01\x00\x00\x00\x00"
    assert encoded.size == 23


def test_a_large_tensor_is_not_copied():
    array = np.zeros((100, 100), np.float32)

    _, encoded = encode(Tensor.of("Y", array), form=BINARY)

    assert np.shares_memory(np.frombuffer(encoded.buffers[0], np.float32), array)


def test_a_tensor_whose_memory_is_not_in_order_is_put_in_order():
    array = np.arange(10000, dtype=np.float32).reshape(100, 100).T

    _, encoded = encode(Tensor.of("Y", array), form=BINARY)

    assert b"".join(encoded.buffers) == array.tobytes()


def test_json_and_binary_outputs_may_be_mixed():
    form = ResponseForm(OutputForm(binary=True), {"A": OutputForm()})

    document, encoded = encode(
        Tensor.of("A", np.array([1], np.int8)), Tensor.of("B", np.array([2], np.int8)), form=form
    )

    assert document["outputs"][0]["data"] == [1]
    assert document["outputs"][1]["parameters"] == {"binary_data_size": 1}
    assert b"".join(encoded.buffers) == b"\x02"


def test_an_empty_binary_tensor_has_a_size_and_no_bytes():
    document, encoded = encode(Tensor.of("Y", np.zeros((0, 4), np.float32)), form=BINARY)

    assert document["outputs"] == [
        {"name": "Y", "datatype": "FP32", "shape": [0, 4], "parameters": {"binary_data_size": 0}}
    ]
    assert (list(encoded.buffers), encoded.size) == ([], 0)


def test_not_a_number_and_the_infinities_are_bare_words():
    values = np.array([np.nan, np.inf, -np.inf, 0.1], np.float32)

    encoded = encoder().encode(response(Tensor.of("Y", values)), JSON)

    assert b'"data":[NaN,Infinity,-Infinity,0.1]' in encoded.text


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_floats_survive_json(dtype):
    values = np.array([0.1, 1 / 3, 1e-45, 3.4e38, 16777217.0, -0.0], dtype)

    document, _ = encode(Tensor.of("Y", values))

    np.testing.assert_array_equal(np.array(document["outputs"][0]["data"], dtype), values)


def test_64_bit_integers_and_booleans_are_plain_json():
    document, encoded = encode(
        Tensor.of("A", np.array([2**64 - 1], np.uint64)),
        Tensor.of("B", np.array([-(2**63)], np.int64)),
        Tensor.of("C", np.array([True, False])),
    )

    assert [each["data"] for each in document["outputs"]] == [[2**64 - 1], [-(2**63)], [True, False]]
    assert b"18446744073709551615" in encoded.text


def test_text_survives_json():
    document, _ = encode(Tensor.of("Y", np.array(['ü"\\', "\x00"], dtype=object)))

    assert document["outputs"][0]["data"] == ['ü"\\', "\x00"]


def test_bytes_that_are_no_text_cannot_be_json():
    with pytest.raises(InvalidArgumentError, match="Please use the binary data format"):
        encode(Tensor.of("Y", np.array([b"\xff"], dtype=object)))


@pytest.mark.parametrize("datatype", ["FP16", "BF16"])
def test_half_floats_cannot_be_json(datatype):
    tensor = Tensor("Y", datatype, (1,), np.zeros(1, np.uint16 if datatype == "BF16" else np.float16))

    with pytest.raises(InvalidArgumentError, match=f"sending {datatype} data via JSON is not supported"):
        encode(tensor)


def test_names_are_escaped():
    document, _ = encode(Tensor.of('Y"\\ü', np.zeros(1, np.int8)), form=BINARY)

    assert document["outputs"][0]["name"] == 'Y"\\ü'


def test_classes_replace_the_output():
    form = ResponseForm(outputs={"Y": OutputForm(classes=2)})
    scores = Tensor.of("Y", np.array([[0.1, 0.7, 0.2], [5, 5, 1]], np.float32))

    encoded = encoder(labels=("cat", "dog")).encode(response(scores), form)

    (output,) = orjson.loads(encoded.text)["outputs"]
    assert (output["datatype"], output["shape"]) == ("BYTES", [2, 2])
    assert output["data"] == ["0.700000:1:dog", "0.200000:2", "5.000000:0:cat", "5.000000:1:dog"]


def test_classes_may_be_binary():
    form = ResponseForm(outputs={"Y": OutputForm(binary=True, classes=1)})

    encoded = encoder(batched=False).encode(response(Tensor.of("Y", np.array([3, 9], np.int32))), form)

    assert b"".join(encoded.buffers) == b"\x03\x00\x00\x009:1"


@pytest.mark.parametrize(
    "array", [np.arange(200_000, dtype=np.int32), np.array([b"a", b"bc"] * 70_000, object), np.full(70_000, np.nan)]
)
def test_a_large_output_is_written_in_pieces_as_in_one(array):
    text = json_content(Tensor.of("Y", array))

    assert [str(each) for each in json.loads(text)] == [
        each.decode() if isinstance(each, bytes) else str(each) for each in array.tolist()
    ]


def test_json_above_the_limit_is_refused_with_the_way_out():
    small = Encoder(lambda *_: False, lambda *_: (), max_json_output=100)

    small.encode(response(Tensor.of("Y", np.zeros(49, np.int8))), JSON)
    with pytest.raises(TooLargeError, match=r"'Y' of 50 elements .* binary output .* --http-max-json-output"):
        small.encode(response(Tensor.of("Y", np.zeros(50, np.int8))), JSON)


def test_json_far_above_the_limit_is_refused_before_anything_is_written():
    huge = np.broadcast_to(np.float32(1), (10**12,))  # takes no memory until it is copied

    with pytest.raises(TooLargeError, match="2000000000000 bytes or more"):
        json_content(Tensor("Y", "FP32", huge.shape, huge))


@pytest.mark.parametrize("form", [JSON, ResponseForm(OutputForm(classes=1))])
def test_a_large_output_is_left_to_a_thread(form):
    large = response(Tensor.of("Y", np.zeros((1, LARGE_ELEMENTS + 1), np.float32)))

    with pytest.raises(LargeOutput):
        encoder().encode(large, form)
    assert encoder().encode(large, form, on_thread=True).text
