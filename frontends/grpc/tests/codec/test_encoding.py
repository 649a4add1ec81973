"""Responses become messages that protobuf reads, with the bytes of large tensors where they were."""

import numpy as np
import pytest

from naiad.errors import InvalidArgumentError
from naiad.types import Response
from naiad_grpc.codec import Encoder, OutputForm, ResponseForm, encode_error
from naiad_grpc.messages import message_class
from naiad_tensors.tensors import Tensor

LABELS = {("m", "Y", 3): ("cat", "dog")}


@pytest.fixture
def encoder():
    return Encoder(lambda model, version: model == "batching", lambda *request: LABELS.get(request, ()))


def response(*arrays, **members):
    outputs = {f"OUTPUT{number}": Tensor.of(f"OUTPUT{number}", array) for number, array in enumerate(arrays)}
    return Response("m", 3, "", outputs, **members)


def read(buffers, name="ModelInferResponse"):
    return message_class(name).FromString(b"".join(buffers))


def test_a_response_becomes_a_message(encoder):
    source = response(np.array([[1, 2]], np.int16), np.array(0.5))
    source.id = "7"

    message = read(encoder.encode(source, ResponseForm()))

    assert message == message_class("ModelInferResponse")(
        model_name="m",
        model_version="3",
        id="7",
        outputs=[
            {"name": "OUTPUT0", "datatype": "INT16", "shape": [1, 2]},
            {"name": "OUTPUT1", "datatype": "FP64", "shape": []},
        ],
        raw_output_contents=[b"\x01\x00\x02\x00", np.array(0.5).tobytes()],
    )


@pytest.mark.parametrize("request_id", ["é", "x" * 127, "x" * 128, "x" * 70_000])
def test_any_id_is_echoed(encoder, request_id):
    source = response()
    source.id = request_id

    assert read(encoder.encode(source, ResponseForm())).id == request_id


def test_large_tensors_are_not_copied(encoder):
    array = np.arange(10_000, dtype=np.float32)

    *_, content = encoder.encode(response(array), ResponseForm())

    assert np.shares_memory(np.frombuffer(content, np.float32), array)
    assert len(content) == 40_000


def test_tensors_that_do_not_lie_in_one_piece_are_put_into_one(encoder):
    array = np.arange(10_000, dtype=np.float32).reshape(100, 100)[:, ::2]

    message = read(encoder.encode(response(array, array[:2]), ResponseForm()))

    assert list(message.raw_output_contents) == [array.tobytes(), array[:2].tobytes()]


def test_strings_are_packed_and_their_size_is_not_remembered(encoder):
    for strings in ([b"", b"a\x00"], [b"x" * 500, b""]):
        message = read(encoder.encode(response(np.array(strings, object)), ResponseForm()))

        packed = b"".join(len(each).to_bytes(4, "little") + each for each in strings)
        assert list(message.raw_output_contents) == [packed]
        assert (message.outputs[0].datatype, list(message.outputs[0].shape)) == ("BYTES", [2])


def test_a_tensor_may_have_no_elements(encoder):
    message = read(encoder.encode(response(np.zeros((2, 0)), np.zeros((0,), object)), ResponseForm()))

    assert list(message.raw_output_contents) == [b"", b""]
    assert list(message.outputs[0].shape) == [2, 0]


def test_one_name_may_have_many_shapes(encoder):
    for size in range(5000):
        encoder.encode(response(np.zeros(size, np.int8)), ResponseForm())

    message = read(encoder.encode(response(np.zeros(7, np.int8)), ResponseForm()))

    assert message.raw_output_contents[0] == bytes(7)
    assert len(encoder._described) <= 1024


@pytest.mark.parametrize(
    ("value", "kind"),
    [
        (True, "bool_param"),
        (False, "bool_param"),
        (np.bool_(True), "bool_param"),
        (0, "int64_param"),
        (-(2**63), "int64_param"),
        (2**63 - 1, "int64_param"),
        (2**63, "uint64_param"),
        (np.int32(-5), "int64_param"),
        (0.5, "double_param"),
        (np.float32(0.25), "double_param"),
        ("", "string_param"),
        ("é" * 100, "string_param"),
    ],
)
def test_parameters_keep_their_type(encoder, value, kind):
    message = read(encoder.encode(response(parameters={"p": value, "q": "x"}), ResponseForm()))

    parameter = message.parameters["p"]
    assert parameter.WhichOneof("parameter_choice") == kind
    assert getattr(parameter, kind) == value
    assert message.parameters["q"].string_param == "x"


def test_the_best_classes_of_an_output_can_be_reported(encoder):
    source = Response("m", 3, "", {"Y": Tensor.of("Y", np.array([0.5, 3.25, 1.0], np.float32))})

    message = read(encoder.encode(source, ResponseForm({"Y": OutputForm(classes=2)})))

    assert (message.outputs[0].datatype, list(message.outputs[0].shape)) == ("BYTES", [2])
    assert message.raw_output_contents[0] == b"\x0e\x00\x00\x003.250000:1:dog" + b"\x0a\x00\x00\x001.000000:2"


def test_each_entry_of_a_batch_has_its_classes(encoder):
    source = Response("batching", 1, "", {"Y": Tensor.of("Y", np.array([[1, 2], [4, 3]]))})

    message = read(encoder.encode(source, ResponseForm({"Y": OutputForm(classes=1)})))

    assert list(message.outputs[0].shape) == [2, 1]
    assert message.raw_output_contents[0] == b"\x03\x00\x00\x002:1" + b"\x03\x00\x00\x004:0"


def test_what_has_no_classes_is_refused(encoder):
    source = Response("m", 1, "", {"Y": Tensor.of("Y", np.array([True]))})

    with pytest.raises(InvalidArgumentError, match="output 'Y'"):
        encoder.encode(source, ResponseForm({"Y": OutputForm(classes=1)}))


def test_outputs_that_have_no_form_are_given_as_they_are(encoder):
    message = read(encoder.encode(response(np.zeros(1, np.int8)), ResponseForm({"Y": OutputForm(classes=1)})))

    assert message.outputs[0].datatype == "INT8"


@pytest.mark.parametrize("final", [True, False])
def test_a_part_of_a_stream_says_whether_it_is_the_last(encoder, final):
    source = response(np.arange(5000), parameters={"p": 1}, final=final)

    message = read(encoder.encode_part(source, ResponseForm()), "ModelStreamInferResponse")

    assert message.error_message == ""
    assert message.infer_response.parameters["triton_final_response"].bool_param is final
    assert message.infer_response.parameters["p"].int64_param == 1
    assert message.infer_response.raw_output_contents[0] == np.arange(5000).tobytes()


def test_an_empty_last_part_has_nothing_else(encoder):
    message = read(encoder.encode_part(Response("m", 1, "7", {}), ResponseForm()), "ModelStreamInferResponse")

    assert message == message_class("ModelStreamInferResponse")(
        infer_response={
            "model_name": "m",
            "model_version": "1",
            "id": "7",
            "parameters": {"triton_final_response": {"bool_param": True}},
        }
    )


def test_an_error_of_a_request_that_ran_says_which_and_whether_it_is_over():
    message = message_class("ModelStreamInferResponse").FromString(encode_error("it failed", "7", "m", 3, False))

    assert message == message_class("ModelStreamInferResponse")(
        error_message="it failed",
        infer_response={
            "model_name": "m",
            "model_version": "3",
            "id": "7",
            "parameters": {"triton_final_response": {"bool_param": False}},
        },
    )


def test_an_error_of_a_request_that_was_refused_says_its_id_and_no_more():
    message = message_class("ModelStreamInferResponse").FromString(encode_error("é \udc80", "7"))

    assert message == message_class("ModelStreamInferResponse")(error_message="é ?", infer_response={"id": "7"})


def test_an_error_without_an_id_still_has_a_response():
    message = message_class("ModelStreamInferResponse").FromString(encode_error("it failed", ""))

    assert message.HasField("infer_response")
