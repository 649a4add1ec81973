"""Rules for inputs, outputs and the tensors of a batch."""

import pytest

from .rules import INPUT, OUTPUT, VALID, only, problems_of

SCATTERED = 'batch_output { target_name: "z" source_input: "x" }'


@pytest.mark.parametrize(
    ("text", "path", "phrase"),
    [
        ("input { data_type: TYPE_FP32 dims: 1 }", "input[0]", "model input must specify 'name'"),
        ('output { name: "o" dims: 1 }', "output[0].data_type", "model output 'o' must specify 'data_type'"),
        ('output { name: "o" data_type: TYPE_FP32 }', "output[0]", "model output 'o' must specify 'dims'"),
        (
            'input { name: "i" data_type: TYPE_FP32 dims: [ 1, -2 ] }',
            "input[0].dims[1]",
            "model input 'i' dimension must be integer >= 1, or -1 to indicate a variable-size dimension for m",
        ),
        (
            'input { name: "i" data_type: TYPE_FP32 dims: 4 reshape { shape: [ 2, 3 ] } }',
            "input[0].reshape",
            "model input 'i' has different size for dims and reshape for m",
        ),
        (
            'input { name: "i" data_type: TYPE_FP32 dims: [ 4, -1, 2 ] reshape { shape: [ 2, -1, 4 ] } }',
            "input[0].reshape",
            "model input 'i' has different size for dims and reshape for m",
        ),
        (
            'output { name: "o" data_type: TYPE_FP32 dims: [ 4, -1 ] reshape { shape: 4 } }',
            "output[0].reshape",
            "model output 'o' has different number of variable-size dimensions for dims and reshape for m",
        ),
        (
            'input { name: "i" data_type: TYPE_FP32 dims: 4 reshape { shape: [ 4, 0 ] } }',
            "input[0].reshape.shape[1]",
            "model input 'i' reshape dimensions must be integer >= 1, or -1",
        ),
        (
            'input { name: "i" data_type: TYPE_FP32 dims: [ 2, 2 ] format: FORMAT_NHWC }',
            "input[0].format",
            "model input NHWC/NCHW require 3 dims for m",
        ),
        (
            'input { name: "i" data_type: TYPE_FP32 dims: 2 is_shape_tensor: true }',
            "input[0].is_shape_tensor",
            "shape tensors are only supported for TensorRT platform, and for ONNX and Python models; model input 'i'",
        ),
        (INPUT + INPUT, "input[1].name", "model input 'x' is given more than once"),
    ],
)
def test_tensor_rules(text, path, phrase):
    message = only(VALID + text)

    assert message[0] == path
    assert phrase in message[1]


@pytest.mark.parametrize(
    "text",
    [
        VALID + 'input { name: "i" data_type: TYPE_FP32 dims: [ 2, 4, -1, 6 ] reshape { shape: [ 8, -1, 1, 6 ] } }',
        VALID + 'input { name: "i" data_type: TYPE_FP32 dims: 1 reshape { } }',
        VALID + 'input { name: "i" data_type: TYPE_FP32 dims: [ 3, 4, 4 ] format: FORMAT_NCHW }',
        'name: "m" platform: "tensorrt_plan" input { name: "i" data_type: TYPE_INT32 dims: 2 is_shape_tensor: true }',
        'name: "m" backend: "onnxruntime" input { name: "i" data_type: TYPE_INT32 dims: 1 reshape { } }',
    ],
)
def test_what_tensors_may_be(text):
    assert problems_of(text) == []


@pytest.mark.parametrize("backend", ['backend: "onnxruntime"', 'platform: "onnxruntime_onnx"', 'backend: "python"'])
@pytest.mark.parametrize(
    ("written", "wrong"),
    [
        ("data_type: TYPE_INT64 dims: 2", []),
        ("data_type: TYPE_INT32 dims: -1", []),
        (
            "data_type: TYPE_FP32 dims: 2",
            [("input[0].data_type", "model input 'i' of m is a shape tensor of TYPE_FP32")],
        ),
        (
            "data_type: TYPE_INT32 dims: [ 2, 2 ]",
            [("input[0].dims", "model input 'i' of m is a shape tensor, which has one dim")],
        ),
        (
            "data_type: TYPE_INT32 dims: 1 reshape { shape: [ 1, 1 ] }",
            [("input[0].dims", "model input 'i' of m is a shape tensor, which has one dim")],
        ),
    ],
)
def test_shape_tensors_of_onnx_and_python_models_hold_whole_numbers_in_one_dim(backend, written, wrong):
    text = f'name: "m" {backend} max_batch_size: 2 input {{ name: "i" {written} is_shape_tensor: true }}'

    assert problems_of(text) == wrong


def test_a_scalar_needs_batching():
    message = only('name: "m" backend: "b" input { name: "i" data_type: TYPE_INT32 dims: 1 reshape { } }')

    assert "cannot have empty reshape for non-batching model as scalar tensors are not supported for m" in message[1]


@pytest.mark.parametrize(
    ("text", "path", "phrase"),
    [
        (
            'batch_input { kind: BATCH_ELEMENT_COUNT target_name: "t" data_type: TYPE_FP32 }',
            "batch_input[0].source_input",
            "batch input kind 'BATCH_ELEMENT_COUNT' expects 1 source input, got 0",
        ),
        (
            'batch_input { target_name: "t" data_type: TYPE_INT64 source_input: "x" }',
            "batch_input[0].data_type",
            "batch input data type must be TYPE_INT32 or TYPE_FP32",
        ),
        (
            'batch_input { target_name: "t" data_type: TYPE_INT32 source_input: "z" }',
            "batch_input[0].source_input[0]",
            "unknown source input name 'z'",
        ),
        (
            'batch_output { target_name: "yy" source_input: "x" }',
            "batch_output[0].target_name[0]",
            "unknown target output name 'yy'",
        ),
        (
            'batch_output { target_name: "y" target_name: "y" source_input: "x" }',
            "batch_output[0].target_name[1]",
            "target output name 'y' can only be specified once",
        ),
        (
            'batch_input { data_type: TYPE_INT32 source_input: "x" }',
            "batch_input[0]",
            "batch input kind 'BATCH_ELEMENT_COUNT' has no target_name for m",
        ),
        (
            'batch_input { target_name: "x" data_type: TYPE_INT32 source_input: "x" }',
            "batch_input[0].target_name[0]",
            "target input name 'x' of m is an input that clients send already",
        ),
        (
            'batch_input { target_name: "t" target_name: "t" data_type: TYPE_INT32 source_input: "x" }',
            "batch_input[0].target_name[1]",
            "target input name 't' of m is a batch input already",
        ),
        (
            'output { name: "z" data_type: TYPE_FP32 dims: [ 2, -1 ] } ' + SCATTERED,
            "batch_output[0].target_name[0]",
            "target output 'z' of m has dims [2, -1], whose variable dims cannot follow from the dims [4]",
        ),
        (
            'output { name: "z" data_type: TYPE_FP32 dims: 4 reshape { shape: [ 2, 2 ] } } ' + SCATTERED,
            "batch_output[0].target_name[0]",
            "target output 'z' of m has a reshape, and its shape is that of its source",
        ),
    ],
)
def test_batch_tensor_rules(text, path, phrase):
    message = only(VALID + INPUT + OUTPUT + text)

    assert message[0] == path
    assert phrase in message[1]
