"""Answers that take milliseconds to encode are encoded on a thread, which a test stands in for."""

import json

import numpy as np
import pytest

from naiad.errors import InternalError
from naiad.types import Response
from naiad_http.codec.responses import LARGE_ELEMENTS, json_content
from naiad_tensors.tensors import Tensor

from .events import texts


@pytest.fixture
def threads(connection):
    connection.threads.waits = True
    return connection.threads


def _json_request(further=b""):
    body = b'{"inputs":[{"name":"X","datatype":"INT8","shape":[1],"data":[1]}]%b}' % further
    return b"POST /v2/models/m/infer HTTP/1.1\r\nHost: h\r\nContent-Length: %d\r\n\r\n" % len(body) + body


def _answer(fake_server, count):
    output = Tensor("Y", "INT8", (count,), np.ones(count, np.int8))
    fake_server.calls[-1].deliver(Response("m", 1, "", {"Y": output}))


def test_a_large_json_answer_is_encoded_on_a_thread(connection, threads, fake_server):
    connection.send(_json_request())

    _answer(fake_server, LARGE_ELEMENTS + 1)
    before = connection.answers()
    threads.jobs[0].run()

    [answer] = connection.answers()
    assert before == []
    assert answer.body.count(b"1,") > LARGE_ELEMENTS - 2


def test_a_small_json_answer_is_encoded_at_once(connection, threads, fake_server):
    connection.send(_json_request())

    _answer(fake_server, LARGE_ELEMENTS)

    assert (len(connection.answers()), threads.jobs) == (1, [])


@pytest.mark.parametrize("binary", ["true", "false"])
def test_the_classes_of_a_large_output_are_encoded_on_a_thread(connection, threads, fake_server, binary):
    parameters = b'{"classification":2,"binary_data":%b}' % binary.encode()
    connection.send(_json_request(b',"outputs":[{"name":"Y","parameters":%b}]' % parameters))

    _answer(fake_server, LARGE_ELEMENTS + 1)
    before = connection.answers()
    threads.jobs[0].run()

    [answer] = connection.answers()
    assert (before, answer.status) == ([], 200)
    assert (answer.body.count(b"1:0"), answer.body.count(b"1:1")) == (1, 1)


def test_a_large_binary_answer_needs_no_thread(connection, threads, fake_server):
    body = (
        b'{"inputs":[{"name":"X","datatype":"INT8","shape":[1],"data":[1]}],"parameters":{"binary_data_output":true}}'
    )
    connection.send(b"POST /v2/models/m/infer HTTP/1.1\r\nHost: h\r\nContent-Length: %d\r\n\r\n" % len(body) + body)

    _answer(fake_server, LARGE_ELEMENTS + 1)

    assert (len(connection.answers()), threads.jobs) == (1, [])


def test_a_thread_that_cannot_start_is_reported_with_its_remedy(connection, threads, fake_server):
    connection.send(_json_request())
    _answer(fake_server, LARGE_ELEMENTS + 1)

    threads.jobs[0].fail(InternalError("no thread can be started; raise ulimit -u"))

    [answer] = connection.answers()
    assert (answer.status, json.loads(answer.body)) == (500, {"error": "no thread can be started; raise ulimit -u"})


@pytest.mark.parametrize("action", ["generate", "generate_stream"])
def test_generate_reports_a_thread_that_cannot_start(connection, threads, fake_server, generate, action):
    connection.send(generate({}, action=action))
    _answer(fake_server, 1 << 20)

    threads.jobs[0].fail(InternalError("no thread can be started; raise ulimit -u"))

    [answer] = connection.answers()
    assert answer.status == 500
    assert b'{"error":"no thread can be started; raise ulimit -u"}' in answer.body


def test_a_client_that_leaves_takes_its_encoding_back(connection, threads, fake_server):
    connection.send(_json_request())
    _answer(fake_server, LARGE_ELEMENTS + 1)

    connection.protocol.connection_lost(None)

    assert threads.jobs[0].cancelled


def test_a_server_that_stops_answers_once_instead_of_what_is_being_encoded(connection, threads, fake_server):
    connection.send(_json_request())
    _answer(fake_server, LARGE_ELEMENTS + 1)

    connection.protocol.conclude()
    threads.jobs[0].run()

    assert [answer.status for answer in connection.answers()] == [503]


def test_the_next_request_waits_until_the_answer_is_encoded(connection, threads, fake_server):
    connection.send(_json_request() * 2)
    _answer(fake_server, LARGE_ELEMENTS + 1)
    calls_before = len(fake_server.calls)

    threads.jobs[0].run()

    assert (calls_before, len(fake_server.calls)) == (1, 2)


@pytest.mark.parametrize("action", ["generate", "generate_stream"])
def test_a_generate_output_above_the_limit_of_json_is_refused(connection, generate, fake_server, action):
    connection.context.inference.max_json_output = 1000
    connection.send(generate({}, action=action))

    _answer(fake_server, 1001)

    [answer] = connection.answers()
    assert answer.status == 400
    assert b"or raise --http-max-json-output" in answer.body


def _large(value, final=True):
    output = Tensor("TEXT", "INT8", (LARGE_ELEMENTS + 1,), np.full(LARGE_ELEMENTS + 1, value, np.int8))
    return Response("m", 1, "", {"TEXT": output}, final=final)


def test_a_large_output_of_generate_is_encoded_on_a_thread(connection, threads, fake_server, generate):
    connection.send(generate({}, action="generate"))
    fake_server.calls[0].deliver(_large(7))
    before = connection.answers()

    threads.jobs[0].run()

    [answer] = connection.answers()
    assert before == []
    assert answer.status == 200
    assert json.loads(answer.body)["TEXT"] == [7] * (LARGE_ELEMENTS + 1)


def test_a_long_string_of_generate_is_encoded_on_a_thread(connection, threads, fake_server, generate):
    connection.send(generate({}, action="generate"))
    fake_server.calls[0].send("x" * (1 << 20) + "y", final=True)
    before = connection.answers()

    threads.jobs[0].run()

    assert before == []
    assert json.loads(connection.answers()[0].body)["TEXT"] == "x" * (1 << 20) + "y"


def test_what_follows_a_large_event_waits_for_it_and_so_does_the_model(streaming, threads):
    streaming.call.deliver(_large(1, final=False))
    streaming.call.send("after", final=True)
    held, before = streaming.call.paused, streaming.answers()

    threads.jobs[0].run()

    [answer] = streaming.answers()
    assert (held, before) == (True, [])
    assert texts(answer) == [[1] * (LARGE_ELEMENTS + 1), "after"]


def test_large_events_are_encoded_one_after_the_other(streaming, threads):
    for value in (1, 2):
        streaming.call.deliver(_large(value, final=False))
    at_first = len(threads.jobs)

    threads.jobs[0].run()
    streaming.call.send("after", final=True)
    threads.jobs[1].run()

    [answer] = streaming.answers()
    assert at_first == 1
    assert [event[0] for event in texts(answer)] == [1, 2, "a"]


def test_a_model_goes_on_when_its_large_event_is_written(streaming, threads):
    streaming.call.deliver(_large(1, final=False))

    threads.jobs[0].run()

    assert not streaming.call.paused


def test_a_model_waits_on_where_the_client_does_not_read(streaming, threads):
    streaming.call.deliver(_large(1, final=False))
    streaming.protocol.pause_writing()

    threads.jobs[0].run()
    waits = streaming.call.paused
    streaming.protocol.resume_writing()

    assert (waits, streaming.call.paused) == (True, False)


def test_a_model_waits_on_where_the_client_has_read_before_the_thread_is_done(streaming, threads):
    streaming.protocol.pause_writing()
    streaming.call.deliver(_large(1, final=False))
    streaming.protocol.resume_writing()

    assert streaming.call.paused


@pytest.mark.parametrize("action", ["generate", "generate_stream"])
def test_a_client_of_generate_that_leaves_takes_its_encoding_back(connection, threads, fake_server, generate, action):
    connection.send(generate({}, action=action))
    fake_server.calls[0].deliver(_large(1))

    connection.protocol.connection_lost(None)

    assert threads.jobs[0].cancelled


@pytest.mark.parametrize("action", ["generate", "generate_stream"])
def test_a_server_that_stops_ends_a_generate_request_once(connection, threads, fake_server, generate, action):
    connection.send(generate({}, action=action))
    fake_server.calls[0].deliver(_large(1))

    connection.protocol.conclude()
    threads.jobs[0].run()

    assert [answer.status for answer in connection.answers()] == [503]


def test_an_encoder_that_breaks_on_its_thread_ends_the_stream_with_an_error(streaming, threads, monkeypatch):
    monkeypatch.setattr("naiad_http.generate.documents.json_content", _exit_on_thread)
    streaming.call.deliver(_large(1))

    threads.jobs[0].run()

    [answer] = streaming.answers()
    assert answer.status == 500
    assert b"SystemExit while the answer was encoded" in answer.body


def _exit_on_thread(tensor, limit, on_thread):
    if on_thread:
        raise SystemExit
    return json_content(tensor, limit, on_thread)
