"""Decoding and encoding against protobuf, for tensors and messages of any kind."""

from math import prod

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from naiad.errors import InvalidArgumentError
from naiad.types import Response
from naiad_grpc.codec import Decoder, Encoder, ResponseForm
from naiad_grpc.messages import message_class
from naiad_kit.buffers import object_array, pack_strings
from naiad_tensors.datatypes import TENSOR_TYPES
from naiad_tensors.tensors import Tensor

ModelInferRequest, ModelInferResponse = message_class("ModelInferRequest"), message_class("ModelInferResponse")

names = st.text(max_size=10).filter(lambda text: text.isprintable())
shapes = arrays.array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=6)
fixed = [kind for kind in TENSOR_TYPES.values() if kind.itemsize]
parameters = st.dictionaries(
    names.filter(lambda name: not name.startswith(("triton_", "sequence_", "priority", "timeout"))),
    st.one_of(st.booleans(), st.integers(-(2**63), 2**63 - 1), st.floats(allow_nan=False), names),
    max_size=3,
)


@st.composite
def tensors(draw, name):
    shape = draw(shapes)
    kind = draw(st.sampled_from([*fixed, TENSOR_TYPES["BYTES"]]))
    count = prod(shape)
    if kind.wire == "BYTES":
        elements = draw(st.lists(st.binary(max_size=4), min_size=count, max_size=count))
        return Tensor(name, kind.wire, shape, object_array(elements).reshape(shape))
    content = draw(st.binary(min_size=count * kind.itemsize, max_size=count * kind.itemsize))
    if kind.wire == "BOOL":
        content = bytes(byte & 1 for byte in content)
    return Tensor(name, kind.wire, shape, np.ndarray(shape, kind.dtype, content))


several = st.lists(names, unique=True, max_size=3).flatmap(lambda some: st.tuples(*(tensors(name) for name in some)))


def content_of(tensor):
    return pack_strings(tensor.array.ravel().tolist()) if tensor.datatype == "BYTES" else tensor.array.tobytes()


def set_parameter(parameter, value):
    kinds = {bool: "bool_param", int: "int64_param", float: "double_param", str: "string_param"}
    setattr(parameter, kinds[type(value)], value)


@given(several, names, parameters)
def test_what_protobuf_writes_is_read(given_tensors, request_id, given_parameters):
    message = ModelInferRequest(model_name="m", id=request_id)
    for key, value in given_parameters.items():
        set_parameter(message.parameters[key], value)
    for each in given_tensors:
        message.inputs.add(name=each.name, datatype=each.datatype, shape=each.shape)
        message.raw_input_contents.append(content_of(each))
    decoder = Decoder(None)

    for _ in range(2):
        request, _ = decoder.decode(message.SerializeToString())

        assert (request.id, request.parameters) == (request_id, given_parameters)
        assert list(request.inputs) == [each.name for each in given_tensors]
        for each in given_tensors:
            read = request.inputs[each.name]
            assert (read.datatype, read.shape, read.array.shape) == (each.datatype, each.shape, each.shape)
            assert read.array.dtype == TENSOR_TYPES[each.datatype].dtype
            assert content_of(read) == content_of(each)


@given(several, names, parameters, st.booleans())
def test_what_is_written_is_what_protobuf_writes(given_tensors, request_id, given_parameters, final):
    outputs = {each.name: each for each in given_tensors}
    response = Response("m", 1, request_id, outputs, given_parameters, final)
    expected = ModelInferResponse(model_name="m", model_version="1", id=request_id)
    for key, value in given_parameters.items():
        set_parameter(expected.parameters[key], value)
    for each in given_tensors:
        expected.outputs.add(name=each.name, datatype=each.datatype, shape=each.shape)
        expected.raw_output_contents.append(content_of(each))
    encoder = Encoder(None, None)

    for _ in range(2):
        assert ModelInferResponse.FromString(b"".join(encoder.encode(response, ResponseForm()))) == expected
        part = message_class("ModelStreamInferResponse").FromString(
            b"".join(encoder.encode_part(response, ResponseForm()))
        )
        assert part.infer_response.parameters.pop("triton_final_response").bool_param is final
        assert part.infer_response == expected


def outcome(decoder, message):
    """What a message decodes to, in a form to compare; an error as its text."""
    try:
        request, form = decoder.decode(message)
    except InvalidArgumentError as error:
        return str(error)
    inputs = [(each.name, each.datatype, each.shape, content_of(each)) for each in request.inputs.values()]
    return request.model_name, request.version, request.id, request.requested, request.parameters, inputs, form


changes = st.lists(st.tuples(st.integers(0, 400), st.integers(0, 2), st.binary(max_size=3)), max_size=2)


@given(several, st.text(max_size=200), changes)
def test_what_was_expected_is_read_as_what_was_not(given_tensors, request_id, given_changes):
    message = ModelInferRequest(model_name="m", id="first")
    message.outputs.add(name="Y")
    for each in given_tensors:
        message.inputs.add(name=each.name, datatype=each.datatype, shape=each.shape)
        message.raw_input_contents.append(content_of(each))
    decoder = Decoder(None)
    decoder.decode(message.SerializeToString())
    message.id = request_id
    changed = message.SerializeToString()
    for index, removed, added in given_changes:
        index %= len(changed)
        changed = changed[:index] + added + changed[index + removed :] or b"\x00"

    assert outcome(decoder, changed) == outcome(Decoder(None), changed)


@given(st.binary(max_size=30))
def test_any_bytes_are_a_request_or_refused(message):
    decoder = Decoder(None)

    assert outcome(decoder, message) == outcome(decoder, message)
