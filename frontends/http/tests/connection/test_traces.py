"""What one connection tells the traces of its requests."""

import pytest

from naiad.errors import QueueFullError
from naiad_http import connection as connection_module

RECEIVED = ["HTTP_RECV_START", "HTTP_RECV_END"]
SENT = ["HTTP_SEND_START", "HTTP_SEND_END", "end"]
PARENT = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"


@pytest.fixture
def tracing(fake_server):
    """Tracing that is switched on."""
    fake_server.tracing.active = True
    return fake_server.tracing


def test_nothing_is_traced_while_tracing_is_off(connection, fake_server, infer):
    connection.send(infer())

    fake_server.calls[0].answer()

    assert (fake_server.tracing.traces, fake_server.calls[0].request.trace) == ([], None)


def test_a_request_is_traced_from_its_first_byte_to_its_last(connection, fake_server, tracing, infer):
    connection.send(infer((1, 2), "7"))
    (trace,) = tracing.traces
    before = list(trace.events)

    fake_server.calls[0].answer()

    assert fake_server.calls[0].request.trace is trace
    assert (before, trace.events) == (RECEIVED, [*RECEIVED, *SENT])
    assert tracing.samples == [("m", 0, "7", "", "")]


def test_the_caller_s_position_in_a_trace_is_handed_on(connection, tracing, infer):
    connection.send(infer((1,), "", f"Traceparent: {PARENT}", "tracestate: a=1", "tracestate: b=2"))

    assert tracing.samples[0][3:] == (PARENT, "a=1,b=2")


def test_a_request_in_pieces_begins_with_the_first(connection, tracing, infer, monkeypatch):
    times = iter(range(100, 200))
    monkeypatch.setattr(connection_module, "monotonic_ns", lambda: next(times))

    connection.send(infer((1, 2, 3)), step=40)
    connection.send(b"")

    (trace,) = tracing.traces
    assert trace.times["HTTP_RECV_START"] == 100
    assert trace.times["HTTP_RECV_END"] > 200


def test_a_request_does_not_begin_with_the_pieces_of_an_earlier_one(connection, fake_server, tracing, infer):
    fake_server.at_once = True
    connection.send(infer((1, 2, 3)), step=40)

    connection.send(infer())

    first, second = (trace.times for trace in tracing.traces)
    assert first["HTTP_RECV_START"] < first["HTTP_RECV_END"]
    assert second["HTTP_RECV_START"] == second["HTTP_RECV_END"]


def test_an_answer_that_comes_at_once_is_reported_too(connection, fake_server, tracing, infer):
    fake_server.at_once = True

    connection.send(infer() * 2)

    assert [trace.events for trace in tracing.traces] == [[*RECEIVED, *SENT]] * 2


def test_a_refusal_is_reported_too(connection, fake_server, tracing, infer):
    fake_server.refusal = QueueFullError("full")

    connection.send(infer())

    assert tracing.traces[0].events == [*RECEIVED, *SENT]


def test_a_client_that_leaves_ends_the_trace(connection, tracing, infer):
    connection.send(infer())

    connection.protocol.connection_lost(None)

    assert tracing.traces[0].events == [*RECEIVED, "end"]


@pytest.mark.parametrize("action", ["generate", "generate_stream"])
def test_generated_answers_are_reported(connection, fake_server, tracing, generate, action):
    connection.send(generate({"id": "7"}, action=action))

    fake_server.calls[0].send("one", final=True)

    assert tracing.traces[0].events == [*RECEIVED, *SENT]


def test_a_stream_begins_to_be_sent_with_its_first_event(connection, fake_server, tracing, generate):
    connection.send(generate({}))
    counts = []

    for step in (lambda: None, lambda: fake_server.calls[0].send("one", "two"), fake_server.calls[0].end):
        step()
        connection.loop.move(0)
        counts.append(len(tracing.traces[0].events))

    assert counts == [2, 3, 5]
    assert tracing.traces[0].events == [*RECEIVED, *SENT]


def test_other_requests_are_not_traced(connection, tracing):
    connection.send(b"POST /v2/models/m/infer HTTP/1.1\r\nHost: h\r\nContent-Length: 1\r\n\r\n{")

    assert tracing.traces == []
