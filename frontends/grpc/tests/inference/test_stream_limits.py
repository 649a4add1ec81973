"""How much of a stream waits: models wait for a slow reader, and requests for room."""

import pytest

from naiad_grpc import streaming
from naiad_grpc.inference import make_inference

from .teller import final_of, taken


def test_models_wait_for_a_slow_reader_and_go_on_when_it_has_caught_up(stream, server, ask):
    stream.feed(ask(model="d"))
    stream.feed(ask(model="m"))
    decoupled, other = server.calls
    for _ in range(streaming.MOST_READY):
        assert not stream.full
        decoupled.answer(final=False)

    assert (decoupled.commands, other.commands, stream.full) == (["pause"], [], True)
    for _ in range(streaming.MOST_READY // 2 - 1):
        stream.take()
    assert decoupled.commands == ["pause"]
    stream.take()
    assert (decoupled.commands, other.commands, stream.full) == (["pause", "resume"], [], False)


def test_models_wait_for_the_reader_of_large_responses(inference, context, server, ask, monkeypatch):
    monkeypatch.setattr(streaming, "MOST_READY_BYTES", 200)
    stream = inference.open_stream(context())
    stream.feed(ask(model="d"))
    call = server.calls[0]

    while not stream.full:
        call.answer(final=False)

    assert 1 < len(taken(stream)) < 10
    assert call.commands == ["pause", "resume"]


def test_a_request_to_a_model_that_streams_begins_paused_when_the_reader_is_slow(stream, server, ask):
    server.at_once = lambda call: [call.answer(final=False) for _ in range(streaming.MOST_READY)]

    stream.feed(ask(model="d"))

    assert server.calls[0].commands == ["pause"]


def test_a_stream_is_full_while_too_many_requests_are_in_flight(stream, server, ask):
    changes = []
    stream.follow(lambda: None, lambda: changes.append(stream.full))
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


@pytest.mark.parametrize("answered", [0, 1], ids=["the first", "one that is held back"])
def test_a_small_answer_to_a_large_request_makes_room_for_the_next(stream, server, ask, monkeypatch, answered):
    monkeypatch.setattr(streaming, "MOST_OPEN_BYTES", 20_000)
    changes = []
    stream.follow(lambda: None, lambda: changes.append(stream.full))
    large = ask(parameters={"p": {"string_param": "x" * 10_000}})
    stream.feed(large)
    stream.feed(large)
    assert stream.full

    server.calls[answered].answer()

    assert changes
    assert changes[-1] is False


def test_a_response_that_waits_for_another_counts_as_its_request_did(stream, server, ask, monkeypatch):
    monkeypatch.setattr(streaming, "MOST_OPEN_BYTES", 10_000)
    stream.feed(ask("1"))
    stream.feed(ask("2"))

    server.calls[1].end(parameters={"p": "x" * 10_000})
    assert stream.full
    server.calls[0].answer()
    assert not stream.full


def test_a_response_over_the_limit_is_an_error_and_the_stream_goes_on(make_server, context, ask):
    server = make_server(**{"grpc-max-response-size": 1000})
    stream = make_inference(server).open_stream(context())
    stream.feed(ask("7", model="d"))
    (call,) = server.calls

    call.end(final=False, parameters={"p": "x" * 1000})
    call.answer(final=True)

    error, answer = taken(stream)
    assert error.error_message.startswith("[request id: 7] ")
    assert "--grpc-max-response-size" in error.error_message
    assert (final_of(error), final_of(answer), answer.error_message) == (False, True, "")
