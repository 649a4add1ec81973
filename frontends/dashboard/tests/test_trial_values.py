"""Values of a trial: what is typed or chosen becomes a tensor of the declared datatype, or a refusal that says why."""

import base64
import io

import numpy as np
import pytest

from naiad.errors import InvalidArgumentError
from naiad.reports import TensorMetadata
from naiad_dashboard.trial_values import image_form, read_tensor
from naiad_tensors.datatypes import bf16_to_fp32


def declared(datatype="FP32", shape=(-1, 3)):
    return TensorMetadata("X", datatype, shape)


def values(text, datatype="FP32", shape=(-1, 3), kind="values", **entry):
    return read_tensor({"kind": kind, "value": text, **entry}, declared(datatype, shape))


def npy(array):
    stream = io.BytesIO()
    np.save(stream, array)
    return base64.b64encode(stream.getvalue()).decode()


@pytest.mark.parametrize(
    ("text", "datatype", "shape", "expected"),
    [
        ("1, 2 3", "FP32", (-1, 3), np.array([[1, 2, 3]], np.float32)),
        ("[[1, 2, 3], [4, 5, 6.5]]", "FP32", (-1, 3), np.array([[1, 2, 3], [4, 5, 6.5]], np.float32)),
        ("nan;inf", "FP64", (-1,), np.array([np.nan, np.inf])),
        ("9223372036854775807", "INT64", (-1,), np.array([2**63 - 1])),
        ("true 0", "BOOL", (2,), np.array([True, False])),
        ("0.5", "FP16", (2, 2), np.full((2, 2), 0.5, np.float16)),  # one number fills the shape
        ("7", "INT32", (-1, 4), np.full((1, 4), 7, np.int32)),
        ('["a", "é"]', "BYTES", (-1, 2), np.array([[b"a", "é".encode()]], object)),
        ("[[[1]], [[2]]]", "UINT8", (-1, -1, 1), np.array([[[1]], [[2]]], np.uint8)),
    ],
)
def test_typed_values_become_tensors(text, datatype, shape, expected):
    tensor = values(text, datatype, shape)

    assert (tensor.datatype, tensor.shape, tensor.array.dtype) == (datatype, expected.shape, expected.dtype)
    np.testing.assert_array_equal(tensor.array, expected)


@pytest.mark.parametrize(
    ("text", "datatype", "words"),
    [
        ("1, two, 3", "FP32", "'two' of input 'X' is not a value of FP32"),
        ("1.5", "INT32", "'1.5' of input 'X' is not a value of INT32"),
        ("300", "UINT8", "outside of UINT8: 0 to 255"),
        ("[[1, 2], [3]]", "FP32", "differ in length"),
        ("[1, [2]]", "FP32", "differ in length"),
        ("[1, 2", "FP32", "not valid JSON"),
        ("[true]", "INT32", "True of input 'X' is not a value of INT32"),
        ("", "FP32", "has no values"),
        ("1 2", "FP32", "has 2 elements"),
        ("[" * 5000, "FP32", "not valid JSON"),
        ("[" * 40 + "1" + "]" * 40, "FP32", "differ in length"),
    ],
)
def test_what_is_no_value_is_refused(text, datatype, words):
    with pytest.raises(InvalidArgumentError, match=words):
        values(text, datatype)


def test_text_and_bytes_of_a_file_are_one_element():
    content = b"\x89PNG\x00"

    assert values("a, b", "BYTES", (-1, 1), kind="text").array.tolist() == [[b"a, b"]]
    assert values(base64.b64encode(content).decode(), "BYTES", (1,), kind="file").array.tolist() == [content]
    with pytest.raises(InvalidArgumentError, match="cannot be of the kind 'text'"):
        values("1", "FP32", kind="text")


@pytest.mark.parametrize("array", [np.arange(6.0).reshape(2, 3), np.asfortranarray(np.arange(6.0).reshape(2, 3))])
def test_a_file_of_numpy_keeps_its_shape_and_gets_the_datatype(array):
    tensor = values(npy(array), kind="npy")

    assert tensor.array.dtype == np.float32
    np.testing.assert_array_equal(tensor.array, array)


def test_files_of_strings_and_of_bfloat16_are_read():
    assert values(npy(np.array(["ä", "b"])), "BYTES", (-1,), kind="npy").array.tolist() == ["ä".encode(), b"b"]
    half = values(npy(np.array([1.5, -2], np.float32)), "BF16", (-1,), kind="npy")
    assert bf16_to_fp32(half.array).tolist() == [1.5, -2]
    whole = values(npy(np.array([1, 70000])), "BF16", (-1,), kind="npy")
    assert bf16_to_fp32(whole.array).tolist() == [1, 70144]


@pytest.mark.parametrize(
    ("content", "datatype", "words"),
    [
        (base64.b64encode(b"PK\x03\x04").decode(), "FP32", "is not a .npy file"),
        (npy(np.array([1.5])), "INT32", "the file has float64, input 'X' needs INT32"),
        (npy(np.array([1j])), "BF16", "the file has complex128, input 'X' needs BF16"),
        (npy(np.array(["a"])), "BF16", "the file has <U1, input 'X' needs BF16"),
        (npy(np.array([300])), "INT8", "do not fit INT8"),
        (npy(np.array([1])), "BYTES", "needs text"),
        ("!", "FP32", "not valid base64"),
        (base64.b64encode(base64.b64decode(npy(np.arange(9.0)))[:-1]).decode(), "FP64", "is not a .npy file"),
    ],
)
def test_a_file_that_does_not_fit_is_refused(content, datatype, words):
    with pytest.raises(InvalidArgumentError, match=words):
        values(content, datatype, (-1,), kind="npy")


@pytest.mark.parametrize("kind", ["text", "values"])
def test_a_text_that_is_not_unicode_is_refused(kind):
    text = "\ud800" if kind == "text" else '["\\ud800"]'

    with pytest.raises(InvalidArgumentError, match="a text of input 'X' is not valid Unicode"):
        values(text, "BYTES", (1,), kind=kind)


def test_an_image_of_negative_sizes_is_refused():
    pixels = base64.b64encode(bytes(6)).decode()

    with pytest.raises(InvalidArgumentError, match="needs 3 bytes for each of its pixels"):
        values(pixels, "FP32", (-1, -1, 3), kind="image", height=-1, width=-2)


def test_a_pickle_is_not_read():
    stream = io.BytesIO()
    np.save(stream, np.array([{}], object), allow_pickle=True)

    with pytest.raises(InvalidArgumentError, match="Python objects"):
        values(base64.b64encode(stream.getvalue()).decode(), kind="npy")


@pytest.mark.parametrize(
    ("shape", "expected"),
    [
        ((-1, 3, 224, 160), {"layout": "CHW", "height": 224, "width": 160, "channels": 3}),
        ((-1, -1, -1, 3), {"layout": "HWC", "height": 0, "width": 0, "channels": 3}),
        ((28, 28, 1), {"layout": "HWC", "height": 28, "width": 28, "channels": 1}),
        ((-1, 4), None),
        ((-1, 7, 7, 64), None),
    ],
)
def test_an_input_that_can_be_an_image_is_recognised(shape, expected):
    assert image_form(shape, "FP32") == expected
    assert image_form(shape, "BYTES") is None


def test_an_image_gets_the_layout_and_scale_of_the_input():
    pixels = np.arange(12, dtype=np.uint8).reshape(2, 2, 3) * 20
    entry = {"height": 2, "width": 2, "kind": "image"}
    encoded = base64.b64encode(pixels.tobytes()).decode()

    chw = values(encoded, "FP32", (-1, 3, 2, 2), scale="0-1", **entry)
    hwc = values(encoded, "UINT8", (2, 2, 3), **entry)
    grey = values(encoded, "FP32", (1, 2, 2), **entry)
    normal = values(encoded, "FP32", (2, 2, 3), scale="imagenet", **entry)

    np.testing.assert_allclose(chw.array[0], pixels.transpose(2, 0, 1) / 255, rtol=1e-6)
    np.testing.assert_array_equal(hwc.array, pixels)
    np.testing.assert_allclose(grey.array[0], pixels @ [0.299, 0.587, 0.114], rtol=1e-5)
    np.testing.assert_allclose(normal.array[0, 0, 1], (20 / 255 - 0.456) / 0.224, rtol=1e-5)


@pytest.mark.parametrize(
    ("typed", "fits"), [("1, 6", True), ("[3 2]", True), ("6", True), ("4,1", False), ("a", False)]
)
def test_a_shape_that_is_typed_counts(typed, fits):
    if fits:
        assert typed_shape(typed) == tuple(int(each) for each in typed if each.isdigit())
    else:
        with pytest.raises(InvalidArgumentError, match="shape"):
            typed_shape(typed)


def typed_shape(text):
    entry = {"kind": "values", "value": "1 2 3 4 5 6", "shape": text}
    return read_tensor(entry, declared()).shape
