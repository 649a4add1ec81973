"""generate and generate_stream on one connection: what is written when, and what a slow or leaving client changes."""

import json
from types import SimpleNamespace

import pytest

from naiad.errors import ModelFailedError, QueueFullError
from naiad.metrics import MetricFamily, Sample
from naiad_http.idle import IDLE_SECONDS


def texts(answer):
    """The texts of the events of a stream; an error stands as it is."""
    events = answer.body.decode().split("\n\n")
    assert events.pop() == ""
    documents = [json.loads(event.removeprefix("data: ")) for event in events]
    return [document.get("TEXT", document) for document in documents]


@pytest.fixture
def streaming(connection, fake_server, generate):
    """A connection with a stream in flight."""
    connection.send(generate({"id": "7"}))
    connection.call = fake_server.calls[0]
    return connection


def test_responses_are_events_of_a_chunked_stream(streaming):
    streaming.call.send("one", "two")
    streaming.loop.move(0)
    streaming.call.send("three")
    streaming.call.end()

    (answer,) = streaming.answers()
    assert (answer.status, answer.headers["content-type"]) == (200, "text/event-stream; charset=utf-8")
    assert "content-length" not in answer.headers
    assert "connection" not in answer.headers
    assert texts(answer) == ["one", "two", "three"]
    assert streaming.call.streams


def test_responses_that_come_together_go_out_together(streaming):
    streaming.call.send("one", "two", "three")
    before = streaming.transport.written
    streaming.loop.move(0)

    assert before == b""
    assert len(streaming.transport.vectors) == 1
    assert len(streaming.answers()[0].chunks) == 2  # one with all three, and none that ends the stream


def test_what_is_large_goes_out_at_once(streaming):
    streaming.call.send("one", "x" * 65536)
    written_at_once = len(streaming.transport.vectors)
    streaming.loop.move(0)

    assert (written_at_once, len(streaming.transport.vectors)) == (1, 1)


def test_the_end_does_not_wait_for_another_turn_of_the_loop(streaming):
    streaming.call.send("one", "two", final=True)

    (answer,) = streaming.answers()
    assert texts(answer) == ["one", "two"]
    streaming.loop.move(0)
    assert len(streaming.answers()) == 1


def test_a_stream_without_responses_is_empty(streaming):
    streaming.call.end()

    (answer,) = streaming.answers()
    assert (answer.status, answer.chunks) == (200, [])


def test_nothing_is_written_before_the_first_response(streaming):
    streaming.loop.move(60)

    assert streaming.transport.written == b""
    assert not streaming.transport.closed


def test_an_error_in_front_of_all_responses_has_its_status(streaming):
    streaming.call.deliver(QueueFullError("full"))

    (answer,) = streaming.answers()
    assert (answer.status, answer.headers["content-type"], answer.headers["retry-after"]) == (
        503,
        "application/json",
        "1",
    )
    assert json.loads(answer.body) == {"error": "[request id: 7] full"}


def test_a_refused_request_has_its_status(connection, fake_server, generate):
    fake_server.refusal = QueueFullError("full")

    connection.send(generate({"id": "7"}) + generate(action="generate"))

    assert [answer.status for answer in connection.answers()] == [503, 503]


@pytest.mark.parametrize("action", ["generate", "generate_stream"])
def test_a_document_that_makes_no_sense_is_not_submitted(connection, fake_server, generate, action):
    connection.send(generate({"X": "text"}, action=action) + generate({}, "Content-Encoding: gzip", action=action))

    assert [answer.status for answer in connection.answers()] == [400, 400]
    assert fake_server.calls == []


def test_an_error_within_the_stream_is_its_last_event_and_nobody_waits_for_more(streaming):
    streaming.call.send("one")
    streaming.call.deliver(ModelFailedError("broke"))

    (answer,) = streaming.answers()
    assert texts(answer) == ["one", {"error": "[request id: 7] broke"}]
    assert answer.chunks[-1] is not None


def test_an_output_that_json_cannot_say_ends_the_stream_and_takes_the_request_back(streaming):
    streaming.call.send("one", b"\xff", "never told")

    (answer,) = streaming.answers()
    assert "has bytes that are no UTF-8" in texts(answer)[1]["error"]
    assert streaming.call.cancelled


@pytest.mark.parametrize("action", ["generate", "generate_stream"])
def test_the_connection_goes_on_afterwards(connection, fake_server, generate, infer, action):
    connection.send(generate(action=action) + infer() + generate(action=action))
    in_flight = len(fake_server.calls)
    fake_server.calls[0].send("one", final=True)
    fake_server.calls[1].answer()
    fake_server.calls[2].send("two", final=True)

    assert in_flight == 1
    assert [answer.status for answer in connection.answers()] == [200, 200, 200]
    assert not connection.transport.closed


def test_a_client_of_http_1_0_reads_until_the_connection_closes(connection, fake_server, generate):
    connection.send(generate(version="HTTP/1.0"))
    fake_server.calls[0].send("one")
    connection.loop.move(0)
    fake_server.calls[0].end()

    head, _, body = connection.transport.written.partition(b"\r\n\r\n")
    assert b"chunked" not in head
    assert b"Connection: close" in head
    assert body == b'data: {"model_name":"m","model_version":"1","TEXT":"one"}\n\n'
    assert connection.transport.closed


def test_a_client_that_asks_to_close_is_obeyed_after_the_stream(connection, fake_server, generate):
    connection.send(generate({}, "Connection: close"))
    fake_server.calls[0].send("one", final=True)

    (answer,) = connection.answers()
    assert (answer.headers["connection"], texts(answer)) == ("close", ["one"])
    assert connection.transport.closed


def test_a_slow_reader_lets_its_model_wait(streaming):
    streaming.call.send("one")
    streaming.loop.move(0)
    streaming.protocol.pause_writing()
    waits = streaming.call.paused
    streaming.protocol.resume_writing()

    assert (waits, streaming.call.paused) == (True, False)


def test_as_little_waits_for_a_slow_reader_over_tls_as_over_tcp(connect):
    assert connect(secure=True).transport.most_unsent == 65536


def test_no_request_starts_before_a_slow_reader_has_read_the_stream_before(streaming, fake_server, generate):
    streaming.send(generate())
    streaming.protocol.pause_writing()
    streaming.call.send("one", final=True)
    before = len(fake_server.calls)
    streaming.protocol.resume_writing()

    assert (before, len(fake_server.calls)) == (1, 2)


def test_a_slow_reader_that_reads_is_not_cut_off_and_one_that_does_not_is(streaming):
    streaming.transport.unsent = 5000
    for _ in range(5):
        streaming.protocol.pause_writing()
        streaming.loop.move(IDLE_SECONDS)
        streaming.protocol.resume_writing()
    reading = not streaming.transport.aborted
    streaming.loop.move(2 * IDLE_SECONDS)

    assert (reading, streaming.transport.aborted) == (True, True)


@pytest.mark.parametrize("end", ["eof_received", "connection_lost"])
@pytest.mark.parametrize("action", ["generate", "generate_stream"])
def test_the_request_of_a_client_that_left_is_taken_back(connection, fake_server, generate, end, action):
    connection.send(generate(action=action))
    fake_server.calls[0].send("one")
    connection.protocol.connection_lost(None) if end == "connection_lost" else connection.protocol.eof_received()

    assert fake_server.calls[0].cancelled


def test_nothing_is_written_to_a_connection_that_is_lost(streaming):
    streaming.call.send("one")
    streaming.transport.close()
    streaming.protocol.connection_lost(None)
    streaming.loop.move(0)

    assert streaming.transport.written == b""


def test_a_stopping_server_lets_a_stream_end_by_itself(streaming):
    streaming.protocol.shutdown()
    streaming.call.send("one")
    streaming.loop.move(0)
    open_still = not streaming.transport.closed
    streaming.call.end()

    (answer,) = streaming.answers()
    assert (answer.headers["connection"], texts(answer)) == ("close", ["one"])
    assert (open_still, streaming.transport.closed) == (True, True)


def test_a_stream_that_does_not_end_in_time_is_ended_with_a_word(streaming):
    streaming.call.send("one")
    streaming.loop.move(0)
    streaming.protocol.shutdown()
    streaming.protocol.conclude()

    (answer,) = streaming.answers()
    assert "the server stopped before the model had answered" in texts(answer)[1]["error"]
    assert (streaming.call.cancelled, streaming.transport.closed) == (True, True)


def test_generate_answers_with_its_one_response(connection, fake_server, generate):
    connection.send(generate({"id": "7"}, action="generate"))
    fake_server.calls[0].send("one")
    before = connection.transport.written
    fake_server.calls[0].end()

    (answer,) = connection.answers()
    assert before == b""
    assert (answer.status, answer.headers["content-type"]) == (200, "application/json")
    assert json.loads(answer.body) == {"id": "7", "model_name": "m", "model_version": "1", "TEXT": "one"}


def test_generate_takes_the_request_back_when_a_second_response_comes(connection, fake_server, generate):
    connection.send(generate(action="generate"))
    fake_server.calls[0].send("one", "two", "three")

    (answer,) = connection.answers()
    assert answer.status == 400
    assert "generate expects model to produce exactly 1 response" in json.loads(answer.body)["error"]
    assert fake_server.calls[0].cancelled


@pytest.mark.parametrize(("action", "status"), [("generate", 400), ("generate_stream", 200)])
def test_responses_that_come_while_the_request_is_submitted_are_taken(connect, fake_server, generate, action, status):
    connection = connect()
    submit = fake_server.submit

    def submit_and_answer(request, deliver, streams=False):
        call = submit(request, deliver, streams)
        call.send("one", "two", "three")
        call.end()
        return call

    connection.site.submit = submit_and_answer
    connection.send(generate(action=action) * 2)

    assert [answer.status for answer in connection.answers()] == [status, status]
    assert all(call.cancelled for call in fake_server.calls)


@pytest.mark.parametrize("action", ["generate", "generate_stream"])
def test_who_asks_for_it_is_told_of_the_load(connection, fake_server, generate, action):
    blocks = [
        Sample((("kv_cache_block_type", kind),), value)
        for kind, value in {"used": 1, "max": 4, "tokens_per": 2}.items()
    ]
    family = MetricFamily("nv_trt_llm_kv_cache_block_metrics", "", "gauge", blocks)
    fake_server.metrics = SimpleNamespace(collect=lambda: [family])
    connection.send(generate({}, "Endpoint-Load-Metrics-Format: text", action=action) + generate(action=action))
    fake_server.calls[0].send("one", final=True)
    fake_server.calls[1].send("one", final=True)

    told, untold = connection.answers()
    assert "named_metrics.kv_cache_utilization=0.250000" in told.headers["endpoint-load-metrics"]
    assert "endpoint-load-metrics" not in untold.headers


def test_the_deadline_of_a_stream_is_that_of_its_header(connection, fake_server, generate):
    connection.send(generate({}, "Request-Timeout: 5"))

    assert fake_server.calls[0].request.deadline is not None
