"""Errors on a stream: one response among others, or the end where its caller asks for that."""

import pytest
from google.protobuf.json_format import MessageToDict

from naiad.errors import DeadlineExceededError, ModelFailedError, QueueFullError
from naiad.types import Response
from naiad_grpc.statuses import Code, RpcError
from naiad_tensors.tensors import Tensor

from .teller import final_of, ready_responses, taken


def test_an_error_of_a_request_does_not_end_the_stream(stream, server, ask):
    stream.feed(ask("7"))
    server.calls[0].deliver(ModelFailedError("it raised"))
    stream.feed(ask("8"))
    server.calls[1].answer()

    error, answer = taken(stream)
    assert MessageToDict(error) == {
        "errorMessage": "[request id: 7] it raised",
        "inferResponse": {
            "modelName": "m",
            "modelVersion": "5",
            "id": "7",
            "parameters": {"triton_final_response": {"boolParam": True}},
        },
    }
    assert answer.error_message == ""


def test_an_error_names_the_version_that_was_asked_for(stream, server, ask):
    stream.feed(ask("7", model_version="2"))

    server.calls[0].deliver(ModelFailedError("it raised"))

    assert taken(stream)[0].infer_response.model_version == "2"


def test_an_error_among_several_responses_is_one_of_them(stream, server, ask):
    stream.feed(ask("7", model="d"))
    call = server.calls[0]

    call.end(error=ModelFailedError("this one failed"), final=False)
    call.answer(final=True)

    error, answer = taken(stream)
    assert (error.error_message, final_of(error)) == ("[request id: 7] this one failed", False)
    assert (error.infer_response.id, error.infer_response.model_name, error.infer_response.model_version) == (
        "7",
        "d",
        "5",
    )
    assert (answer.error_message, final_of(answer)) == ("", True)


@pytest.mark.parametrize("model", ["m", "d"])
def test_an_error_that_ends_a_request_is_its_last_response(stream, server, ask, model):
    stream.feed(ask("7", model=model))
    stream.finish()

    server.calls[0].deliver(ModelFailedError("it raised"))

    assert final_of(taken(stream)[0])
    assert stream.over


@pytest.mark.parametrize("model", ["m", "d"])
def test_a_request_that_is_refused_gets_an_error_with_its_id_and_no_more(stream, server, ask, model):
    server.refusal = QueueFullError("full")

    stream.feed(ask("7", model=model))

    (message,) = taken(stream)
    assert MessageToDict(message) == {"errorMessage": "[request id: 7] full", "inferResponse": {"id": "7"}}


def test_what_is_no_request_gets_an_error_too(stream, server, ask):
    stream.feed(ask("7", model_version="x"))
    stream.feed(ask("8", model="unknown"))
    stream.feed(b"\x0a\x05m")

    messages = taken(stream)
    assert [each.infer_response.id for each in messages] == ["7", "8", ""]
    assert [each.error_message[:27] for each in messages] == [
        "[request id: 7] failed to g",
        "[request id: 8] unknown mod",
        "failed to parse the request",
    ]
    assert server.calls == []


def test_errors_keep_their_position_among_the_responses(stream, server, ask):
    stream.feed(ask("1"))
    stream.feed(ask("2", model="unknown"))

    assert ready_responses(stream) == []
    server.calls[0].answer()
    assert [number for number, *_ in ready_responses(stream)] == ["1", "2"]


@pytest.mark.parametrize("final", [False, True])
def test_what_a_model_puts_into_its_outputs_cannot_end_the_stream(stream, server, ask, caplog, final):
    stream.feed(ask("7", model="d"))

    server.calls[0].deliver(Response("d", 1, "7", {"Y": Tensor("Y", "FP32", (1,), None)}, final=final))

    (message,) = taken(stream)
    assert message.error_message.startswith("[request id: 7] the server failed to answer")
    assert final_of(message) is final
    assert "Traceback" in caplog.text


@pytest.mark.parametrize("model", ["m", "d"])
def test_the_first_error_ends_a_stream_whose_caller_asks_for_that(strict, server, ask, model):
    strict.feed(ask("1", model="d"))
    strict.feed(ask("2", model=model))
    one, two = server.calls
    one.answer(final=False)

    two.deliver(QueueFullError("full"))
    one.answer(final=True)

    assert strict.take() is not None
    with pytest.raises(RpcError) as raised:
        strict.take()
    assert (raised.value.code, raised.value.message) == (Code.UNAVAILABLE, "[request id: 2] full")
    assert (one.commands, two.commands) == (["cancel"], ["cancel"])
    assert strict.take() is None
    assert strict.over


def test_no_request_is_taken_after_the_error_that_ends_a_stream(strict, server, ask):
    server.refusal = QueueFullError("full")
    strict.feed(ask("1"))
    server.refusal = None
    strict.feed(ask("2"))

    assert server.calls == []
    with pytest.raises(RpcError, match=r"\[request id: 1\] full"):
        strict.take()


def test_an_error_that_comes_at_once_takes_its_own_request_back_too(strict, server, ask):
    server.at_once = lambda call: call.end(error=ModelFailedError("this one failed"), final=False)

    strict.feed(ask("1", model="d"))

    assert server.calls[0].commands == ["cancel"]


@pytest.mark.parametrize("model", ["m", "d"])
def test_the_deadline_of_the_call_ends_its_stream(inference, context, server, ask, model):
    stream = inference.open_stream(context(remaining=0.0))
    stream.feed(ask("1", model="d"))
    stream.feed(ask("2", model=model))
    stream.finish()
    one, two = server.calls

    two.deliver(DeadlineExceededError("Deadline Exceeded: still executing"))

    with pytest.raises(RpcError, match="Deadline Exceeded") as raised:
        stream.take()
    assert raised.value.code is Code.DEADLINE_EXCEEDED
    assert one.commands == ["cancel"]
    assert stream.over


def test_a_request_that_comes_after_the_deadline_ends_the_stream_too(inference, context, server, ask):
    stream = inference.open_stream(context(remaining=0.0))
    server.refusal = DeadlineExceededError("had passed on arrival")

    stream.feed(ask("1"))

    with pytest.raises(RpcError, match="had passed on arrival"):
        stream.take()


@pytest.mark.parametrize("remaining", [None, 60.0])
def test_a_deadline_of_something_else_is_an_error_as_any_other(inference, context, server, ask, remaining):
    stream = inference.open_stream(context(remaining=remaining))
    stream.feed(ask("1"))

    server.calls[0].deliver(DeadlineExceededError("the model's own call took too long"))

    (message,) = taken(stream)
    assert message.error_message == "[request id: 1] the model's own call took too long"
