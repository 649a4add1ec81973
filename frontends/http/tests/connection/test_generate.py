"""generate and generate_stream on one connection: what is written, and when."""

import json

import pytest

from naiad.errors import ModelFailedError, QueueFullError
from naiad_kit.metrics import MetricFamily, Sample

from .events import texts


def test_responses_are_events_of_a_chunked_stream(streaming):
    streaming.call.send("one", "two")
    streaming.loop.move(0)
    streaming.call.send("three")
    streaming.call.end()

    (answer,) = streaming.answers()
    assert (answer.status, answer.headers["content-type"]) == (200, "text/event-stream; charset=utf-8")
    assert (answer.headers["cache-control"], answer.headers["x-accel-buffering"]) == ("no-cache", "no")
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
        "text/event-stream; charset=utf-8",
        "1",
    )
    assert answer.body == b'data: {"error":"[request id: 7] full"}\n\n'


def test_a_refused_request_has_its_status(connection, fake_server, generate):
    fake_server.refusal = QueueFullError("full")

    connection.send(generate({"id": "7"}) + generate(action="generate"))

    assert [answer.status for answer in connection.answers()] == [503, 503]


@pytest.mark.parametrize("action", ["generate", "generate_stream"])
def test_a_document_that_is_invalid_is_not_submitted(connection, fake_server, generate, action):
    connection.send(generate({"X": "text"}, action=action) + generate({}, "Content-Encoding: gzip", action=action))

    assert [answer.status for answer in connection.answers()] == [400, 400]
    assert fake_server.calls == []


def test_an_error_within_the_stream_is_its_last_event_and_ends_it(streaming):
    streaming.call.send("one")
    streaming.call.deliver(ModelFailedError("broke"))

    (answer,) = streaming.answers()
    assert texts(answer) == ["one", {"error": "[request id: 7] broke"}]
    assert answer.chunks[-1] is not None


def test_an_output_that_json_cannot_say_ends_the_stream_and_takes_the_request_back(streaming):
    streaming.call.send("one", b"\xff", "never sent")

    (answer,) = streaming.answers()
    assert "has bytes that are not valid UTF-8" in texts(answer)[1]["error"]
    assert streaming.call.cancelled


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
    assert "exactly 1 response" in json.loads(answer.body)["error"]
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

    connection.context.submit = submit_and_answer
    connection.send(generate(action=action) * 2)

    assert [answer.status for answer in connection.answers()] == [status, status]
    assert all(call.cancelled for call in fake_server.calls)


@pytest.mark.parametrize("action", ["generate", "generate_stream"])
def test_who_asks_for_it_is_reported_the_load(connection, fake_server, generate, action):
    blocks = [
        Sample((("kv_cache_block_type", kind),), value)
        for kind, value in {"used": 1, "max": 4, "tokens_per": 2}.items()
    ]
    family = MetricFamily("nv_trt_llm_kv_cache_block_metrics", "", "gauge", blocks)
    fake_server.metrics.collect_made_by_models = lambda: [family]
    connection.send(generate({}, "Endpoint-Load-Metrics-Format: text", action=action) + generate(action=action))
    fake_server.calls[0].send("one", final=True)
    fake_server.calls[1].send("one", final=True)

    reported, unreported = connection.answers()
    assert "named_metrics.kv_cache_utilization=0.250000" in reported.headers["endpoint-load-metrics"]
    assert "endpoint-load-metrics" not in unreported.headers


def test_the_deadline_of_a_stream_is_that_of_its_header(connection, fake_server, generate):
    connection.send(generate({}, "Request-Timeout: 5"))

    assert fake_server.calls[0].request.deadline is not None
