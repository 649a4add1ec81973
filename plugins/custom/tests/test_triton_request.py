"""`pb_utils.InferenceRequest`, `InferenceResponse`, `TritonError` and the functions that look into them."""

import json

import numpy as np
import pytest

import triton_python_backend_utils as pb_utils
from naiad.errors import NaiadError
from naiad.types import Request
from naiad_custom.triton.errors import as_naiad_error
from naiad_custom.triton.request import received_requests
from naiad_tensors.tensors import Tensor
from naiad_testing.tracing import FakeTrace


def request_with(**fields):
    inputs = {"A": Tensor.of("A", np.array([1])), "B": Tensor.of("B", np.array([2.0]))}
    return received_requests([Request("m", inputs, **fields)], ("X", "Y"), None)[0]


def request_to(model_name="other", **fields):
    return pb_utils.InferenceRequest(**{"model_name": model_name, "inputs": [], "requested_output_names": [], **fields})


def test_a_received_request_tells_everything():
    request = request_with(
        id="seven",
        parameters={"tries": 3, "who": "me", "fast": True},
        timeout_microseconds=250,
        correlation_id="call",
        sequence_start=True,
        requested=("Y",),
    )

    assert [tensor.name() for tensor in request.inputs()] == ["A", "B"]
    assert (request.request_id(), request.correlation_id(), request.timeout()) == ("seven", "call", 250)
    assert request.flags() == pb_utils.TRITONSERVER_REQUEST_FLAG_SEQUENCE_START
    assert json.loads(request.parameters()) == {"tries": 3, "who": "me", "fast": True}
    assert request.requested_output_names() == {"Y"}
    assert request.is_cancelled() is False
    assert request.trace().get_context() is None


def test_a_request_whose_caller_has_left_is_cancelled():
    assert request_with(cancelled=True).is_cancelled() is True


@pytest.mark.parametrize(("context", "reason"), [('{"traceparent": "00-1"}', '{"traceparent": "00-1"}'), ("", None)])
def test_the_trace_of_a_request_gives_its_context(context, reason):
    received = request_with(trace=FakeTrace(context=context))

    passed_on = request_to("other", trace=received.trace())

    assert received.trace().get_context() == reason
    assert passed_on.trace().get_context() == reason


def test_a_request_that_names_no_outputs_wants_all():
    assert request_with().requested_output_names() == {"X", "Y"}


def test_an_input_is_found_by_name():
    request = request_with()

    assert pb_utils.get_input_tensor_by_name(request, "B").as_numpy().tolist() == [2.0]
    assert pb_utils.get_input_tensor_by_name(request, "B") is request.inputs()[1]
    assert pb_utils.get_input_tensor_by_name(request, "C") is None


def test_a_request_can_be_made_by_a_model():
    request = pb_utils.InferenceRequest(
        request_id="one",
        correlation_id=4,
        inputs=[pb_utils.Tensor("A", np.array([1]))],
        requested_output_names=["X"],
        model_name="other",
        model_version=2,
        flags=pb_utils.TRITONSERVER_REQUEST_FLAG_SEQUENCE_END,
        timeout=9,
        preferred_memory=pb_utils.PreferredMemory(pb_utils.TRITONSERVER_MEMORY_GPU, 1),
        parameters='{"key": "value"}',
    )

    assert (request.request_id(), request.correlation_id(), request.timeout()) == ("one", 4, 9)
    assert request.flags() == pb_utils.TRITONSERVER_REQUEST_FLAG_SEQUENCE_END
    assert pb_utils.get_input_tensor_by_name(request, "A").as_numpy().tolist() == [1]
    assert (request.requested_output_names(), request.parameters()) == ({"X"}, '{"key": "value"}')
    assert request.preferred_memory().device_id() == 1


@pytest.mark.parametrize("parameters", ["{", "[1]"])
def test_parameters_of_a_request_that_are_no_object_are_refused(parameters):
    with pytest.raises(pb_utils.TritonModelException, match="parameters of a request"):
        request_to(parameters=parameters)


@pytest.mark.parametrize(
    ("argument", "value", "reason"),
    [
        ("inputs", [np.array([1])], r"inputs\[0\] of pb_utils.InferenceRequest must be a pb_utils.Tensor, such as"),
        ("inputs", None, "inputs of pb_utils.InferenceRequest must be a list of pb_utils.Tensor, not NoneType"),
        ("requested_output_names", "OUT", "requested_output_names of pb_utils.InferenceRequest must be a list of str"),
        ("requested_output_names", [1], r"requested_output_names\[0\] of pb_utils.InferenceRequest must be a str"),
        ("model_name", None, "model_name of pb_utils.InferenceRequest must be a str, not NoneType"),
        ("request_id", 5, "request_id of pb_utils.InferenceRequest must be a str, not int"),
        ("model_version", "1", "model_version of pb_utils.InferenceRequest must be an int, not str"),
        ("timeout", 1.5, "timeout of pb_utils.InferenceRequest must be an int, not float"),
        ("flags", "1", "flags of pb_utils.InferenceRequest must be an int, not str"),
        ("flags", -1, "flags of pb_utils.InferenceRequest must be an int of 32 bits"),
        ("timeout", 1 << 64, "timeout of pb_utils.InferenceRequest must be an int of 64 bits"),
        ("model_version", 1 << 63, "model_version of pb_utils.InferenceRequest must be an int of 64 bits"),
        ("requested_output_names", {"X"}, "requested_output_names of pb_utils.InferenceRequest must be a list of str"),
        ("preferred_memory", pb_utils.TRITONSERVER_MEMORY_CPU, "must be a pb_utils.PreferredMemory, not MemoryType"),
        ("trace", "x", "trace of pb_utils.InferenceRequest must be a pb_utils.InferenceTrace, not str"),
    ],
)
def test_an_argument_of_another_type_is_refused_where_it_is_written(argument, value, reason):
    with pytest.raises(TypeError, match=reason):
        request_to(**{argument: value})


@pytest.mark.parametrize(
    ("argument", "value", "reason"),
    [
        ("correlation_id", 1.5, "Correlation ID must be integer or string"),
        ("correlation_id", -1, "Correlation ID must be integer or string"),
        ("correlation_id", 1 << 64, "Correlation ID must be integer or string"),
        ("parameters", {"a": [1]}, "Expect parameters values to have type bool/int/str, found type <class 'list'>"),
        ("parameters", {1: "a"}, "Expect parameters keys to have type str, found type <class 'int'>"),
        ("parameters", {"a": 1 << 63}, "parameter 'a' does not fit a signed 64-bit integer: 9223372036854775808"),
        ("model_version", 0, "model_version of pb_utils.InferenceRequest must be a version from 1 on, or -1 .*, not 0"),
        ("model_version", -2, "must be a version from 1 on, or -1 for the one that the model's policy chooses, not -2"),
        ("inputs", [pb_utils.Tensor("A", np.array([1]))] * 2, "input 'A' already exists in request"),
        ("inputs", [None], "Input tensor for request with id '' and model name 'other' should not be empty"),
    ],
)
def test_what_no_model_could_be_asked_is_refused(argument, value, reason):
    with pytest.raises(pb_utils.TritonModelException, match=reason):
        request_to(**{argument: value})


@pytest.mark.parametrize("missing", ["inputs", "requested_output_names", "model_name"])
def test_inputs_outputs_and_model_have_to_be_there(missing):
    fields = {"inputs": [], "requested_output_names": [], "model_name": "other"}
    del fields[missing]

    with pytest.raises(TypeError, match=f"{missing} of .*, not Missing"):
        pb_utils.InferenceRequest(**fields)


def test_numbers_of_numpy_are_numbers():
    request = request_to(correlation_id=np.uint64(7), timeout=np.int64(9), flags=np.int32(1))

    assert (request.correlation_id(), request.timeout(), request.flags()) == (7, 9, 1)


def test_a_response_tells_its_outputs_and_parameters():
    response = pb_utils.InferenceResponse([pb_utils.Tensor("X", np.array([1]))], parameters={"a": 1, "b": False})

    assert pb_utils.get_output_tensor_by_name(response, "X").as_numpy().tolist() == [1]
    assert pb_utils.get_output_tensor_by_name(response, "Y") is None
    assert json.loads(response.parameters()) == {"a": 1, "b": False}
    assert (response.has_error(), response.error()) == (False, None)


@pytest.mark.parametrize(
    ("parameters", "reason"),
    [
        ({1: "a"}, "keys to have type"),
        ({"a": 0.5}, "values to have type"),
    ],
)
def test_response_parameters_of_other_types_are_refused(parameters, reason):
    with pytest.raises(pb_utils.TritonModelException, match=reason):
        pb_utils.InferenceResponse(parameters=parameters)


@pytest.mark.parametrize(
    ("arguments", "kind", "reason"),
    [
        ({"output_tensors": None}, TypeError, "must be a list, not NoneType"),
        ({"output_tensors": ["x"]}, TypeError, "must be of pb_utils.Tensor, not str"),
        ({"output_tensors": pb_utils.Tensor("x", np.zeros(1))}, TypeError, "must be a list, not Tensor"),
        ({"output_tensors": [None]}, pb_utils.TritonModelException, "for inference response should not be empty"),
        ({"error": "x"}, TypeError, "must be a TritonError, not str"),
        ({"parameters": "x"}, pb_utils.TritonModelException, "must be a dict, found type <class 'str'>"),
    ],
)
def test_a_response_of_something_else_is_refused(arguments, kind, reason):
    with pytest.raises(kind, match=reason):
        pb_utils.InferenceResponse(**arguments)


def test_a_list_that_is_filled_anew_does_not_change_the_response_made_of_it():
    tensor = pb_utils.Tensor("X", np.array([1]))
    outputs = [tensor]
    response = pb_utils.InferenceResponse(outputs)

    outputs.clear()

    assert response.output_tensors() == [tensor]


def test_the_outputs_of_a_response_may_be_a_tuple():
    tensor = pb_utils.Tensor("X", np.array([1]))

    assert pb_utils.InferenceResponse((tensor,)).output_tensors() == [tensor]


@pytest.mark.parametrize("arguments", [(None,), (5,), ("x", 99), ("x", "INTERNAL"), ("x", None)])
def test_an_error_of_something_else_is_refused(arguments):
    with pytest.raises(TypeError, match=r"of a pb_utils\.TritonError must be"):
        pb_utils.TritonError(*arguments)


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [((0, 0), "must be TRITONSERVER_MEMORY_CPU"), ((pb_utils.TRITONSERVER_MEMORY_CPU, "0"), "must be an int")],
)
def test_a_preference_for_no_memory_is_refused(arguments, reason):
    with pytest.raises(TypeError, match=reason):
        pb_utils.PreferredMemory(*arguments)


def test_an_error_is_internal_unless_it_says_otherwise():
    error = pb_utils.TritonError("text")

    assert (error.message(), error.code(), str(error)) == ("text", pb_utils.TritonError.INTERNAL, "text")


@pytest.mark.parametrize(
    "code",
    ["UNKNOWN", "INTERNAL", "NOT_FOUND", "INVALID_ARG", "UNAVAILABLE", "UNSUPPORTED", "ALREADY_EXISTS", "CANCELLED"],
)
def test_every_code_reaches_the_caller(code):
    error = as_naiad_error(pb_utils.TritonError("text", getattr(pb_utils.TritonError, code)))

    assert isinstance(error, NaiadError)
    assert (error.code, str(error)) == (code, "text")
