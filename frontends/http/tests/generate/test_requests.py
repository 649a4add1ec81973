"""Flat JSON to requests: what is a tensor, what a parameter, and what neither."""

import json

import numpy as np
import pytest

from naiad.errors import InvalidArgumentError, NotFoundError, TooLargeError
from naiad_config import DataType, ModelConfig, ModelInput
from naiad_http.codec.request_head import RequestHead
from naiad_http.generate import GenerateDecoder


def config(*inputs, batches=0):
    """A model with inputs given as name, datatype and dims."""
    model_input = tuple(
        ModelInput(name=name, data_type=DataType[f"TYPE_{kind}"], dims=dims) for name, kind, dims in inputs
    )
    return ModelConfig(name="m", input=model_input, max_batch_size=batches)


LANGUAGE = config(("text_input", "STRING", (1,)), ("stream", "BOOL", (1,)), ("bad_words", "STRING", (-1,)))


def decode(document, model=LANGUAGE, limit=100_000, **request_head):
    body = document if isinstance(document, bytes) else json.dumps(document).encode()
    return GenerateDecoder(limit, lambda name, version: model).decode(RequestHead("m", **request_head), body)


def arrays(request):
    return {name: tensor.array.tolist() for name, tensor in request.inputs.items()}


def test_members_named_as_inputs_are_tensors_and_all_others_parameters():
    request = decode({"id": "7", "text_input": "hello", "stream": True, "temperature": 0.5, "seed": 3, "user": "ada"})

    assert arrays(request) == {"text_input": [b"hello"], "stream": [True]}
    assert request.parameters == {"temperature": 0.5, "seed": 3, "user": "ada"}
    assert (request.id, request.model_name, request.requested) == ("7", "m", ())


def test_the_same_holds_one_level_down_in_parameters():
    request = decode({"text_input": "hello", "parameters": {"stream": False, "temperature": 1, "id": "the model's"}})

    assert arrays(request) == {"text_input": [b"hello"], "stream": [False]}
    assert request.parameters == {"temperature": 1, "id": "the model's"}
    assert request.id == ""


def test_inputs_that_are_called_like_members_of_the_protocol_are_tensors():
    request = decode({"id": 5, "parameters": [1, 2]}, config(("id", "INT32", (1,)), ("parameters", "INT8", (2,))))

    assert arrays(request) == {"id": [5], "parameters": [1, 2]}
    assert request.id == ""


def test_parameters_of_the_protocol_keep_their_meaning():
    request = decode({"sequence_id": "s", "sequence_start": True, "parameters": {"priority": 2, "timeout": 9}})

    assert (request.correlation_id, request.sequence_start, request.sequence_end) == ("s", True, False)
    assert (request.priority, request.timeout_microseconds, request.parameters) == (2, 9, {})


def test_the_word_of_a_forwarded_header_counts_more_than_the_body():
    request = decode({"tenant": "mine", "x": 1}, forwarded={"tenant": "theirs"})

    assert request.parameters == {"tenant": "theirs", "x": 1}


@pytest.mark.parametrize(
    ("dims", "batches", "value", "shape"),
    [
        ((1,), 0, 5, (1,)),
        ((1,), 4, 5, (1, 1)),
        ((4,), 0, [1, 2, 3, 4], (4,)),
        ((-1,), 0, [1, 2, 3], (3,)),
        ((-1,), 0, 1, (1,)),
        ((-1,), 8, [], (1, 0)),
        ((2, -1), 0, [1, 2, 3, 4, 5, 6], (2, 3)),
        ((-1, 2), 0, [1, 2, 3, 4, 5, 6], (3, 2)),
        ((-1, -1), 0, [1, 2, 3], (1, 3)),
        ((-1, 3, -1), 2, [1, 2, 3, 4, 5, 6], (1, 1, 3, 2)),
        ((), 0, 1, ()),
    ],
)
def test_the_shape_follows_from_the_number_of_elements(dims, batches, value, shape):
    request = decode({"X": value}, config(("X", "INT64", dims), batches=batches))

    assert request.inputs["X"].shape == request.inputs["X"].array.shape == shape
    assert request.inputs["X"].array.ravel().tolist() == (value if isinstance(value, list) else [value])


@pytest.mark.parametrize(
    ("dims", "value"), [((4,), [1, 2]), ((1,), [1, 2]), ((3,), 1), ((2, -1), [1, 2, 3]), ((2,), [])]
)
def test_elements_that_make_no_shape_are_refused(dims, value):
    with pytest.raises(InvalidArgumentError, match="The schema can not convert input 'X' to tensor with proper shape"):
        decode({"X": value}, config(("X", "INT64", dims)))


@pytest.mark.parametrize(
    ("kind", "value", "dtype"),
    [("FP32", [1, 2.5], "float32"), ("UINT8", [255], "uint8"), ("BOOL", [True], "bool"), ("INT16", -3, "int16")],
)
def test_the_datatype_is_that_of_the_configuration(kind, value, dtype):
    tensor = decode({"X": value}, config(("X", kind, (-1,)))).inputs["X"]

    assert (tensor.datatype, tensor.array.dtype) == (kind, np.dtype(dtype))
    assert tensor.array.tolist() == (value if isinstance(value, list) else [value])


@pytest.mark.parametrize(
    ("kind", "value", "message"),
    [
        ("STRING", 5, "input 'X' takes strings, got 5"),
        ("INT32", "5", "input 'X' takes integers, got '5'"),
        ("INT8", 300, "INT8 goes from -128 to 127"),
        ("BOOL", 1, "input 'X' takes true or false, got 1"),
        ("INT32", True, "input 'X' takes integers, got true"),
        ("FP16", 1.0, "for input 'X'; infer has that, and so has gRPC"),
        ("INT32", None, "give one value, or a flat array"),
        ("INT32", {"a": 1}, "give one value, or a flat array"),
        ("INT32", [[1], [2]], "give one value, or a flat array"),
        ("INT32", [1, None], "give one value, or a flat array"),
    ],
)
def test_a_value_that_does_not_fit_its_input_is_refused(kind, value, message):
    with pytest.raises(InvalidArgumentError) as caught:
        decode({"X": value}, config(("X", kind, (-1,))))

    assert message in str(caught.value)


def test_an_input_that_the_model_has_not_is_answered_with_those_it_has():
    with pytest.raises(InvalidArgumentError) as caught:
        decode({"x": [1, 2]}, config(("a", "INT32", (2,)), ("b", "INT32", (2,))))

    assert str(caught.value).endswith("The model has no such input; its inputs are a, b")


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (b"", "JSON buffer"),
        (b"[1]", "it must be an object"),
        (b'"text"', "it must be an object"),
        (b'{"id": 5}', "'id': it must be a string"),
        (b'{"temperature": null}', "parameter 'temperature' has invalid type"),
        (b'{"temperature": [1]}', "parameter 'temperature' has invalid type"),
        (b'{"parameters": "none"}', None),
        (b'{"triton_x": 1}', "'triton_' are reserved"),
        (b'{"seed": 9223372036854775808}', "does not fit a signed 64-bit integer"),
        (b'{"priority": "high"}', "'priority'"),
        (b'{"text_input": "a", "text_input": "b"}', "'text_input' already exists in request"),
        (b'{"text_input": "a", "parameters": {"text_input": "b"}}', "'text_input' already exists in request"),
        (b'{"seed": 1, "parameters": {"seed": 2}}', "'seed' already exists in request"),
        (b'{"parameters": {"seed": 1, "seed": 2}}', "'seed' already exists in request"),
        (b'{"x": ' + b"[" * 900 + b"]" * 900 + b', "x": 1}', "exist"),
        (b"{%b}" % b",".join(b'"k%d": %b' % (i % 99, b"1") for i in range(100)), "'k0' already exists in request"),
    ],
)
def test_a_document_that_is_invalid_is_refused(body, message):
    if message is None:
        assert decode(body).parameters == {"parameters": "none"}
        return
    with pytest.raises(InvalidArgumentError) as caught:
        decode(body)

    assert message in str(caught.value)


def test_text_that_only_looks_like_a_second_key_is_taken():
    request = decode({"text_input": 'the key "seed" and "text_input"', "bad_words": ["seed", "text_input"], "seed": 1})

    assert arrays(request)["bad_words"] == [b"seed", b"text_input"]


def test_a_tensor_is_bounded_like_a_body():
    with pytest.raises(TooLargeError, match="--http-max-input-size"):
        decode({"X": [1] * 200}, config(("X", "INT64", (-1,))), limit=1000)


def test_an_unknown_model_is_notified_whatever_the_body():
    def unknown(name, version):
        raise NotFoundError(f"Request for unknown model: '{name}' is not found")

    with pytest.raises(NotFoundError, match="'m' is not found"):
        GenerateDecoder(1000, unknown).decode(RequestHead("m"), b"nonsense")
