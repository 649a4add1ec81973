"""The byte budget of the server and streams: what is charged for large requests and responses, and when it is freed."""

import numpy as np
import pytest

from naiad.types import Response
from naiad_grpc.messages import message_class
from naiad_kit.frontends.byte_budget import UNCHARGED_BYTES
from naiad_tensors.tensors import Tensor

LARGE = UNCHARGED_BYTES * 2
SMALL = UNCHARGED_BYTES // 4 - 100


@pytest.fixture
def ask_much():
    """The bytes of a request with one input of `size` bytes."""

    def make(request_id="7", model="m", size=LARGE):
        message = message_class("ModelInferRequest")(model_name=model, id=request_id)
        message.inputs.add(name="X", datatype="UINT8", shape=[size])
        message.raw_input_contents.append(bytes(size))
        return message.SerializeToString()

    return make


def large_response(call, size=LARGE, **members):
    outputs = {"Y": Tensor.of("Y", np.zeros(size, np.uint8))}
    call.deliver(Response("m", 5, call.request.id, outputs, **members))


def taken(stream):
    messages = []
    while (message := stream.take()) is not None:
        messages.append(message_class("ModelStreamInferResponse").FromString(b"".join(message)))
    return messages


def test_a_request_is_charged_until_its_small_answer_is_there(server, stream, ask_much, ask):
    message = ask_much()

    stream.feed(message)
    stream.feed(ask())

    assert server.bytes_in_flight.reserved == len(message)
    server.calls[0].end()
    assert server.bytes_in_flight.reserved == 0


@pytest.mark.parametrize("model", ["m", "d"])
def test_an_answer_is_charged_until_the_next_one_is_taken(server, stream, ask, model):
    stream.feed(ask("1", model=model))

    large_response(server.calls[0])

    charged = server.bytes_in_flight.reserved
    assert LARGE < charged < LARGE + 200
    assert stream.take() is not None
    assert server.bytes_in_flight.reserved == charged  # it is being written
    assert stream.take() is None
    assert server.bytes_in_flight.reserved == 0


def test_answers_that_wait_for_earlier_ones_are_charged(server, stream, ask):
    stream.feed(ask("1"))
    stream.feed(ask("2"))

    large_response(server.calls[1])
    waiting = server.bytes_in_flight.reserved
    server.calls[0].answer()

    assert waiting > LARGE
    assert server.bytes_in_flight.reserved == waiting
    assert len(taken(stream)) == 2
    assert server.bytes_in_flight.reserved == 0


def test_a_request_over_the_limit_is_refused_and_the_stream_goes_on(server, stream, ask_much, ask):
    server.bytes_in_flight.limit = LARGE

    stream.feed(ask_much("1"))
    stream.feed(ask("2"))

    (refusal,) = taken(stream)
    assert refusal.error_message.startswith("[request id: 1] ")
    assert "--max-bytes-in-flight" in refusal.error_message
    assert [call.request.id for call in server.calls] == ["2"]
    assert server.bytes_in_flight.reserved == 0


@pytest.mark.parametrize("model", ["m", "d"])
def test_small_requests_are_charged_where_a_stream_has_many(server, stream, ask_much, model):
    messages = [ask_much(str(number), model, SMALL) for number in range(20)]
    server.bytes_in_flight.limit = 8 * max(map(len, messages))

    for message in messages:
        stream.feed(message)

    assert len(server.calls) == 12  # four are within what needs no reservation
    assert 7 * SMALL < server.bytes_in_flight.reserved < 9 * SMALL
    for call in server.calls:
        call.end()
    assert sum("--max-bytes-in-flight" in each.error_message for each in taken(stream)) == 8
    assert server.bytes_in_flight.reserved == 0
    stream.feed(ask_much("again", model, SMALL))
    assert server.bytes_in_flight.reserved == 0


def test_small_answers_that_wait_for_an_earlier_one_are_charged_where_there_are_many(server, stream, ask):
    for number in range(20):
        stream.feed(ask(str(number)))

    for call in server.calls[1:]:
        large_response(call, SMALL)
    waiting = server.bytes_in_flight.reserved
    server.calls[0].end()

    assert waiting > 14 * SMALL
    assert len(taken(stream)) == 20
    assert server.bytes_in_flight.reserved == 0


def test_small_responses_that_are_not_taken_are_charged_where_there_are_many(server, stream, ask):
    stream.feed(ask(model="d"))

    for _ in range(20):
        large_response(server.calls[0], SMALL, final=False)
    waiting = server.bytes_in_flight.reserved
    first = [stream.take() for _ in range(10)]
    half = server.bytes_in_flight.reserved
    stream.cancel()

    assert waiting > 14 * SMALL
    assert None not in first
    assert 0 < half < waiting
    assert server.bytes_in_flight.reserved == 0


@pytest.mark.parametrize("wrong", ["unknown", "garbage", "refused"])
def test_a_request_that_is_refused_gives_its_bytes_back(server, stream, ask_much, wrong):
    if wrong == "refused":
        server.refusal = ValueError("no")
    message = ask_much(model="u" if wrong == "unknown" else "m")

    stream.feed(message[:-1] if wrong == "garbage" else message)

    assert len(taken(stream)) == 1
    assert server.bytes_in_flight.reserved == 0


def test_a_client_that_leaves_gives_everything_back(server, stream, ask_much, ask):
    for number in range(3):
        stream.feed(ask_much(str(number), model="d"))
    large_response(server.calls[0], final=False)
    large_response(server.calls[1], final=False)
    stream.take()

    stream.cancel()

    assert server.bytes_in_flight.reserved == 0
