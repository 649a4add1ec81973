"""ModelStreamInfer as a machine: what comes out, and in which order, whatever the models do."""

import pytest
from google.protobuf.json_format import MessageToDict

from naiad.errors import ModelFailedError, QueueFullError
from naiad.types import Response, Tensor
from naiad_grpc import streaming
from naiad_grpc.inference import make_inference
from naiad_grpc.messages import message_class
from naiad_grpc.statuses import Code, RpcError

GRPC_ERRORS = ("triton_grpc_error", "true")


@pytest.fixture
def stream(inference, context):
    return inference.open_stream(context())


@pytest.fixture
def strict(inference, context):
    """A stream that its first error ends."""
    return inference.open_stream(context(("a", "b"), GRPC_ERRORS))


def taken(stream):
    """Everything that is ready, as messages."""
    messages = []
    while (buffers := stream.take()) is not None:
        messages.append(message_class("ModelStreamInferResponse").FromString(b"".join(buffers)))
    return messages


def told(stream):
    """Everything that is ready, as (id, outputs, final)."""
    return [(each.infer_response.id, len(each.infer_response.outputs), final_of(each)) for each in taken(stream)]


def final_of(message):
    return message.infer_response.parameters["triton_final_response"].bool_param


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
    assert told(stream) == []
    first.answer()
    assert told(stream) == [("0", 1, True), ("1", 0, True), ("2", 1, True)]
    fourth.answer()
    assert told(stream) == [("3", 1, True)]


def test_a_response_without_outputs_is_a_response_all_the_same(stream, server, ask):
    stream.feed(ask("7"))

    server.calls[0].end()

    assert told(stream) == [("7", 0, True)]


def test_a_decoupled_request_waits_for_no_other(stream, server, ask):
    stream.feed(ask("slow"))
    stream.feed(ask("a", model="d"))
    stream.feed(ask("b", model="d"))
    slow, a, b = server.calls

    a.answer(final=False)
    b.answer(final=False)
    a.answer(final=True)
    b.answer(final=True)
    assert told(stream) == [("a", 1, False), ("b", 1, False), ("a", 1, True), ("b", 1, True)]
    slow.answer()
    assert told(stream) == [("slow", 1, True)]


def test_an_empty_last_response_is_kept_to_ourselves(stream, server, ask):
    stream.feed(ask("7", model="d"))
    stream.finish()

    server.calls[0].answer(final=False)
    server.calls[0].end()

    assert told(stream) == [("7", 1, False)]
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

    assert told(stream) == [("7", 0, True)]


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


def test_errors_keep_their_place_among_the_responses(stream, server, ask):
    stream.feed(ask("1"))
    stream.feed(ask("2", model="unknown"))

    assert told(stream) == []
    server.calls[0].answer()
    assert [number for number, *_ in told(stream)] == ["1", "2"]


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
    assert (one.told, two.told) == (["cancel"], ["cancel"])
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

    assert server.calls[0].told == ["cancel"]


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

    assert [call.told for call in server.calls][1:] == [["cancel"], ["cancel"]]
    assert stream.take() is None
    assert stream.over


def test_models_wait_for_a_slow_reader_and_go_on_when_it_has_caught_up(stream, server, ask):
    stream.feed(ask(model="d"))
    stream.feed(ask(model="m"))
    decoupled, other = server.calls
    for _ in range(streaming.MOST_READY):
        assert not stream.full
        decoupled.answer(final=False)

    assert (decoupled.told, other.told, stream.full) == (["pause"], [], True)
    for _ in range(streaming.MOST_READY // 2 - 1):
        stream.take()
    assert decoupled.told == ["pause"]
    stream.take()
    assert (decoupled.told, other.told, stream.full) == (["pause", "resume"], [], False)


def test_models_wait_for_the_reader_of_large_responses(inference, context, server, ask, monkeypatch):
    monkeypatch.setattr(streaming, "MOST_READY_BYTES", 200)
    stream = inference.open_stream(context())
    stream.feed(ask(model="d"))
    call = server.calls[0]

    while not stream.full:
        call.answer(final=False)

    assert 1 < len(taken(stream)) < 10
    assert call.told == ["pause", "resume"]


def test_a_request_to_a_model_that_streams_begins_paused_when_the_reader_is_slow(stream, server, ask):
    server.at_once = lambda call: [call.answer(final=False) for _ in range(streaming.MOST_READY)]

    stream.feed(ask(model="d"))

    assert server.calls[0].told == ["pause"]


def test_a_stream_is_full_while_too_many_requests_are_in_flight(stream, server, ask):
    changes = []
    stream.on_room = lambda: changes.append(stream.full)
    for _ in range(streaming.MOST_OPEN):
        assert not stream.full
        stream.feed(ask())

    assert stream.full
    server.calls[1].answer()  # held back by the first, so it still takes its place
    assert (stream.full, changes) == (True, [])
    server.calls[0].answer()
    assert not stream.full
    assert changes[0] is False


def test_a_stream_is_full_while_requests_of_many_bytes_are_in_flight(stream, server, ask, monkeypatch):
    monkeypatch.setattr(streaming, "MOST_OPEN_BYTES", 2 * len(ask()))

    stream.feed(ask())
    assert not stream.full
    stream.feed(ask())
    assert stream.full
    server.calls[0].answer()
    assert not stream.full


def test_a_response_that_waits_for_another_counts_as_its_request_did(stream, server, ask, monkeypatch):
    monkeypatch.setattr(streaming, "MOST_OPEN_BYTES", 10_000)
    stream.feed(ask("1"))
    stream.feed(ask("2"))

    server.calls[1].end(parameters={"p": "x" * 10_000})
    assert stream.full
    server.calls[0].answer()
    assert not stream.full


def test_each_response_of_a_request_that_is_traced_is_recorded(stream, server, ask):
    server.tracing.active = True
    stream.feed(ask("7", model="d"))

    server.calls[0].answer(final=False)
    stream.take()
    server.calls[0].answer(final=False)
    server.calls[0].end()
    recorded = server.tracing.traces[0].told
    sent = ["GRPC_SEND_START", "GRPC_SEND_END"]
    assert recorded == ["GRPC_WAITREAD_START", "GRPC_WAITREAD_END", *sent, "GRPC_SEND_START"]
    stream.take()

    assert recorded[-3:] == [*sent, "END"]


@pytest.mark.parametrize("way", ["cancel", "refuse", "answer", "answer in part"])
def test_no_trace_is_left_open(stream, server, ask, way):
    server.tracing.active = True
    if way == "refuse":
        server.refusal = QueueFullError("full")
    stream.feed(ask("7", model="d"))
    if way.startswith("answer"):
        server.calls[0].answer(final=way == "answer")
    assert server.tracing.traces[0].told[-1] != "END"

    stream.cancel()

    assert server.tracing.traces[0].told[-1] == "END"


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
