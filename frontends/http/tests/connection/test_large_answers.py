"""Answers that take milliseconds to encode are encoded on a thread, which a test stands in for."""

import numpy as np
import pytest

from naiad.types import Response, Tensor
from naiad_http.codec.responses import LARGE_ELEMENTS


@pytest.fixture
def threads(connection):
    connection.threads.waits = True
    return connection.threads


def _json_request():
    body = b'{"inputs":[{"name":"X","datatype":"INT8","shape":[1],"data":[1]}]}'
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


def test_a_large_binary_answer_needs_no_thread(connection, threads, fake_server):
    body = (
        b'{"inputs":[{"name":"X","datatype":"INT8","shape":[1],"data":[1]}],"parameters":{"binary_data_output":true}}'
    )
    connection.send(b"POST /v2/models/m/infer HTTP/1.1\r\nHost: h\r\nContent-Length: %d\r\n\r\n" % len(body) + body)

    _answer(fake_server, LARGE_ELEMENTS + 1)

    assert (len(connection.answers()), threads.jobs) == (1, [])


def test_a_client_that_leaves_takes_its_encoding_back(connection, threads, fake_server):
    connection.send(_json_request())
    _answer(fake_server, LARGE_ELEMENTS + 1)

    connection.protocol.connection_lost(None)

    assert threads.jobs[0].cancelled


def test_a_server_that_stops_answers_once_in_place_of_what_is_being_encoded(connection, threads, fake_server):
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
    connection.site.inference.max_json_output = 1000
    connection.send(generate({}, action=action))

    _answer(fake_server, 1001)

    [answer] = connection.answers()
    assert answer.status == 400
    assert b"or raise --http-max-json-output" in answer.body
