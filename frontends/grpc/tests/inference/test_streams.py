"""ModelStreamInfer as a machine: which responses come out, in which order, and when it is over."""

import pytest
from google.protobuf.json_format import MessageToDict

from naiad.errors import ModelFailedError
from naiad_grpc.inference import make_inference
from naiad_grpc.statuses import RpcError

from .teller import final_of, ready_responses, taken


def test_a_response_says_that_it_is_the_last(stream, server, ask):
    stream.feed(ask("7"))
    server.calls[0].answer()

    (message,) = taken(stream)
    assert server.calls[0].streams
    assert message.error_message == ""
    assert (message.infer_response.id, message.infer_response.model_version, final_of(message)) == ("7", "5", True)


def test_responses_come_in_the_order_of_their_requests(stream, server, ask):
    for number in range(4):
        stream.feed(ask(str(number)))
    first, second, third, fourth = server.calls

    third.answer()
    second.deliver(ModelFailedError("it raised"))
    assert ready_responses(stream) == []
    first.answer()
    assert ready_responses(stream) == [("0", 1, True), ("1", 0, True), ("2", 1, True)]
    fourth.answer()
    assert ready_responses(stream) == [("3", 1, True)]


def test_a_response_without_outputs_is_a_response_all_the_same(stream, server, ask):
    stream.feed(ask("7"))

    server.calls[0].end()

    assert ready_responses(stream) == [("7", 0, True)]


def test_a_decoupled_request_waits_for_no_other(stream, server, ask):
    stream.feed(ask("slow"))
    stream.feed(ask("a", model="d"))
    stream.feed(ask("b", model="d"))
    slow, a, b = server.calls

    a.answer(final=False)
    b.answer(final=False)
    a.answer(final=True)
    b.answer(final=True)
    assert ready_responses(stream) == [("a", 1, False), ("b", 1, False), ("a", 1, True), ("b", 1, True)]
    slow.answer()
    assert ready_responses(stream) == [("slow", 1, True)]


def test_an_empty_last_response_is_kept_to_ourselves(stream, server, ask):
    stream.feed(ask("7", model="d"))
    stream.finish()

    server.calls[0].answer(final=False)
    server.calls[0].end()

    assert ready_responses(stream) == [("7", 1, False)]
    assert stream.over


def test_an_empty_last_response_is_sent_to_those_who_ask_for_it(stream, server, ask):
    stream.feed(ask("7", model="d", parameters={"triton_enable_empty_final_response": {"bool_param": True}}))

    server.calls[0].end()

    (message,) = taken(stream)
    assert MessageToDict(message) == {
        "inferResponse": {
            "modelName": "d",
            "modelVersion": "5",
            "id": "7",
            "parameters": {"triton_final_response": {"boolParam": True}},
        }
    }


def test_a_last_response_with_parameters_says_more_than_that_it_is_the_last(stream, server, ask):
    stream.feed(ask("7", model="d"))

    server.calls[0].end(parameters={"p": 1})

    assert ready_responses(stream) == [("7", 0, True)]


def test_a_stream_is_over_when_its_last_response_is_taken(stream, server, ask):
    stream.feed(ask("1"))
    stream.finish()

    assert not stream.over
    server.calls[0].answer()
    assert not stream.over
    assert len(taken(stream)) == 1
    assert stream.over


def test_a_stream_without_requests_is_over_at_its_end(stream):
    assert not stream.over

    stream.finish()

    assert stream.over


def test_a_caller_who_leaves_takes_all_requests_back(stream, server, ask):
    for model in ("m", "d", "m"):
        stream.feed(ask(model=model))
    server.calls[0].answer()

    stream.cancel()
    for call in server.calls:
        call.answer()

    assert [call.commands for call in server.calls][1:] == [["cancel"], ["cancel"]]
    assert stream.take() is None
    assert stream.over


def test_metadata_that_is_forwarded_goes_with_every_request(make_server, ask, context):
    server = make_server(**{"grpc-header-forward-pattern": "^my"})
    stream = make_inference(server).open_stream(context(("my-key", "1"), remaining=5.0))

    stream.feed(ask())
    stream.feed(ask())

    assert [call.request.parameters for call in server.calls] == [{"my-key": "1"}] * 2
    assert server.calls[0].request.deadline == server.calls[1].request.deadline is not None


def test_metadata_that_cannot_be_forwarded_ends_the_stream(make_server, context):
    inference = make_inference(make_server(**{"grpc-header-forward-pattern": ".*"}))

    with pytest.raises(RpcError, match="Header 'timeout' is reserved"):
        inference.open_stream(context(("timeout", "1")))
