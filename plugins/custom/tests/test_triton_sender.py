"""`pb_utils.InferenceResponseSender`: what may be sent, in which order, and what is said about the rest."""

import threading

import numpy as np
import pytest

import triton_python_backend_utils as pb_utils
from naiad.backend import Batch, Reply
from naiad.errors import NotFoundError
from naiad.types import Request
from naiad_custom.triton.request import received_requests
from naiad_custom.triton.sender import InferenceResponseSender, Senders
from naiad_tensors.tensors import Tensor
from naiad_testing.backends import CollectingSender

FINAL = pb_utils.TRITONSERVER_RESPONSE_COMPLETE_FINAL


def response(value: int = 1) -> pb_utils.InferenceResponse:
    return pb_utils.InferenceResponse([pb_utils.Tensor("Y", np.array([value]))])


@pytest.fixture
def kernel() -> CollectingSender:
    return CollectingSender()


@pytest.fixture
def request_of_kernel() -> Request:
    return Request("m", {"X": Tensor.of("X", np.array([1, 2]))})


@pytest.fixture
def many(kernel, request_of_kernel) -> InferenceResponseSender:
    """The sender of a decoupled model."""
    return InferenceResponseSender(kernel, request_of_kernel, decoupled=True)


@pytest.fixture
def one(kernel, request_of_kernel) -> InferenceResponseSender:
    """The sender of a model that answers once."""
    return InferenceResponseSender(kernel, request_of_kernel, decoupled=False)


def test_a_decoupled_model_sends_any_number_of_responses(many, kernel):
    many.send(response(1))
    many.send(response(2))
    many.send(flags=FINAL)

    assert [reply.outputs["Y"].item() for reply in kernel.wait_until_ended()] == [1, 2]


def test_the_final_flag_may_come_with_the_last_response(many, kernel):
    many.send(response(1), FINAL)

    assert len(kernel.wait_until_ended()) == 1


def test_an_error_may_be_one_response_among_several(many, kernel):
    many.send(pb_utils.InferenceResponse(error=pb_utils.TritonError("gone", pb_utils.TritonError.NOT_FOUND)))
    many.send(response(2), FINAL)

    first, second = kernel.wait_until_ended()
    assert isinstance(first, NotFoundError)
    assert isinstance(second, Reply)


def test_parameters_go_with_their_response(many, kernel):
    many.send(pb_utils.InferenceResponse([], parameters={"step": 1}), FINAL)

    assert kernel.wait_until_ended()[0].parameters == {"step": 1}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((), "Inference Response object must be provided when the response flags is set to zero"),
        ((None, 2), "Unable to send response. Unsupported flag provided: 2"),
        ((1,), "send takes an InferenceResponse, not int"),
    ],
)
def test_what_cannot_be_sent_is_refused(many, kernel, arguments, message):
    with pytest.raises(pb_utils.TritonModelException, match=message):
        many.send(*arguments)

    assert kernel.replies == []


def test_nothing_is_sent_after_the_final_flag(many):
    many.send(flags=FINAL)

    for arguments in ((response(),), (None, FINAL)):
        with pytest.raises(pb_utils.TritonModelException, match=r"Response sender has been closed"):
            many.send(*arguments)


def test_a_model_that_answers_once_sends_one_response_and_then_the_flag(one, kernel):
    one.send(response(1))
    one.send(flags=FINAL)

    assert len(kernel.wait_until_ended()) == 1


def test_a_model_that_answers_once_cannot_send_twice(one):
    one.send(response(1))

    with pytest.raises(pb_utils.TritonModelException, match=r"Non-decoupled model cannot send more than one response"):
        one.send(response(2))


def test_a_model_that_answers_once_cannot_send_none(one):
    message = r"Non-decoupled model cannot send complete final before sending a response"

    with pytest.raises(pb_utils.TritonModelException, match=message):
        one.send(flags=FINAL)


def test_a_sender_knows_that_its_caller_has_left(many, kernel):
    before = many.is_cancelled()
    kernel.leave()

    assert (before, many.is_cancelled()) == (False, True)


def test_sending_waits_for_a_slow_reader(request_of_kernel):
    kernel = CollectingSender(room=2)
    sender = InferenceResponseSender(kernel, request_of_kernel, decoupled=True)
    sending = threading.Thread(target=lambda: [sender.send(response(number)) for number in range(3)])
    sending.start()

    kernel.wait_until_held_up()
    before = len(kernel.replies)
    kernel.take(2)
    sending.join(10)

    assert (before, len(kernel.replies)) == (2, 3)


def test_a_buffer_that_is_filled_anew_does_not_change_what_was_sent(many, kernel):
    buffer = np.zeros(1, np.int64)
    for number in range(3):
        buffer[0] = number
        many.send(pb_utils.InferenceResponse([pb_utils.Tensor("Y", buffer)]))

    assert [reply.outputs["Y"].item() for reply in kernel.replies] == [0, 1, 2]


def test_an_input_that_is_handed_back_is_not_copied(many, kernel, request_of_kernel):
    array = request_of_kernel.inputs["X"].payload
    array.flags.writeable = False

    many.send(pb_utils.InferenceResponse([pb_utils.Tensor("Y", array)]))

    assert kernel.replies[0].outputs["Y"] is array


def test_a_request_has_one_sender(kernel, request_of_kernel):
    senders = Senders(Batch([request_of_kernel], [1], lambda _: kernel))
    request = received_requests([request_of_kernel], ("Y",), senders)[0]

    sender = request.get_response_sender()
    senders.close()

    assert isinstance(sender, pb_utils.InferenceResponseSender)
    assert request.get_response_sender() is sender


def test_a_request_that_was_answered_has_no_sender(kernel, request_of_kernel):
    senders = Senders(Batch([request_of_kernel], [1], lambda _: kernel))
    request = received_requests([request_of_kernel], ("Y",), senders)[0]
    senders.close()

    with pytest.raises(pb_utils.TritonModelException, match="not taken before execute returned"):
        request.get_response_sender()


def test_a_request_that_a_model_made_has_no_sender():
    with pytest.raises(pb_utils.TritonModelException, match="a request that a model made has no response sender"):
        pb_utils.InferenceRequest(model_name="other", inputs=[], requested_output_names=[]).get_response_sender()
