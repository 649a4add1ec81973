"""Whatever tensor goes out comes back the same: the answer to one request is fed into the next."""

import json
from contextlib import suppress

import numpy as np
import orjson
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from naiad.errors import NaiadError
from naiad.types import Response
from naiad_http.codec import Decoder, Encoder, OutputForm, ResponseForm
from naiad_http.codec.request_head import RequestHead
from naiad_tensors.datatypes import TENSOR_TYPES
from naiad_tensors.tensors import Tensor

NAMES = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=8)
SHAPES = arrays.array_shapes(min_dims=0, max_dims=4, min_side=0, max_side=4)


@st.composite
def tensors(draw, wires=tuple(TENSOR_TYPES)):
    kind = TENSOR_TYPES[draw(st.sampled_from(wires))]
    shape = draw(SHAPES)
    elements = None
    if kind.wire == "BYTES":
        elements = st.binary(max_size=20)
        array = draw(arrays.arrays(object, shape, elements=elements, fill=st.nothing()))
    else:
        array = draw(arrays.arrays(kind.dtype, shape, elements=elements))
    return Tensor(draw(NAMES), kind.wire, shape, array)


def send(response, form, binary):
    """The tensors of a response, encoded as an answer and decoded as the inputs of a request."""
    encoded = Encoder(lambda *_: False, lambda *_: ()).encode(response, form)
    document = orjson.loads(encoded.text) if b"NaN" not in encoded.text and b"Infinity" not in encoded.text else None
    front = encoded.text.replace(b'"outputs":', b'"inputs":', 1)
    assert document is None or document["model_name"] == response.model_name
    request_head = RequestHead("m", header_length=len(front) if binary else None)
    return (
        Decoder(1 << 20, lambda *_: None, lambda *_: None)
        .decode(request_head, front, b"".join(encoded.buffers))[0]
        .inputs
    )


def assert_same(got, sent):
    assert list(got) == list(sent)
    for name, tensor in sent.items():
        assert (got[name].datatype, got[name].shape) == (tensor.datatype, tensor.shape)
        if tensor.datatype == "BYTES":
            assert got[name].array.tolist() == tensor.array.tolist()
        else:
            np.testing.assert_array_equal(got[name].array, tensor.array)


@given(st.lists(tensors(), max_size=4, unique_by=lambda tensor: tensor.name), st.text(max_size=10).map(str))
def test_binary_tensors_survive(sent, request_id):
    response = Response("mödel", 1, "", {tensor.name: tensor for tensor in sent})

    got = send(response, ResponseForm(OutputForm(binary=True)), binary=True)

    assert_same(got, response.outputs)


JSON_WIRES = tuple(wire for wire in TENSOR_TYPES if wire not in ("FP16", "BF16", "BYTES"))


@given(st.lists(tensors(JSON_WIRES), max_size=4, unique_by=lambda tensor: tensor.name))
def test_json_tensors_survive(sent):
    response = Response("m", 1, "", {tensor.name: tensor for tensor in sent})

    got = send(response, ResponseForm(), binary=False)

    assert_same(got, response.outputs)


@given(arrays.arrays(object, SHAPES, elements=st.text(max_size=5).filter(lambda text: text.isprintable())))
def test_json_strings_survive(texts):
    response = Response("m", 1, "", {"S": Tensor.of("S", texts, "BYTES")})

    got = send(response, ResponseForm(), binary=False)

    assert_same(got, response.outputs)


@given(st.binary(max_size=200), st.integers(0, 220))
def test_garbage_is_a_request_or_a_clean_refusal(body, length):
    request_head = RequestHead("m", header_length=min(length, len(body)) or None)

    with suppress(NaiadError):
        Decoder(1 << 20, lambda *_: None, lambda *_: None).decode(request_head, body[:length], body[length:])


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**70), 2**70) | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)
INPUT = st.fixed_dictionaries(
    {},
    optional={
        "name": st.just("X") | VALUES,
        "datatype": st.sampled_from(sorted(TENSOR_TYPES)) | VALUES,
        "shape": st.lists(st.integers(-1, 5), max_size=3) | VALUES,
        "data": VALUES,
        "parameters": st.fixed_dictionaries({}, optional={"binary_data_size": VALUES}) | VALUES,
    },
)
OUTPUT = st.fixed_dictionaries({}, optional={"name": VALUES, "parameters": VALUES})
DOCUMENT = st.fixed_dictionaries(
    {},
    optional={
        "id": VALUES,
        "parameters": VALUES,
        "inputs": st.lists(INPUT, max_size=2) | VALUES,
        "outputs": st.lists(OUTPUT, max_size=2) | VALUES,
    },
)


@given(DOCUMENT)
def test_any_json_is_a_request_or_a_clean_refusal(document):
    text = json.dumps(document).encode()

    with suppress(NaiadError):
        request, _ = Decoder(1 << 20, lambda *_: None, lambda *_: None).decode(RequestHead("m"), text, b"")
        assert all(tensor.array.shape == tensor.shape for tensor in request.inputs.values())
