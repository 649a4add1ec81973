"""Requests on one connection: what is submitted, and what is written."""

import json

import numpy as np
import pytest

from naiad.errors import ModelFailedError, QueueFullError
from naiad.types import Response
from naiad_http.incoming import LONGEST_HEAD
from naiad_tensors.tensors import Tensor


@pytest.mark.parametrize("step", [None, 1, 7])
def test_a_request_goes_to_the_server_and_its_answer_back(connection, fake_server, step, infer):
    connection.send(infer([3, 4], "42"), step)
    (call,) = fake_server.calls
    call.answer()

    (answer,) = connection.answers()
    assert call.request.inputs["X"].array.tolist() == [3, 4]
    assert (answer.status, json.loads(answer.body)["id"]) == (200, "42")
    assert json.loads(answer.body)["outputs"][0]["data"] == [3, 4]
    assert not connection.transport.closed


def test_pipelined_requests_are_answered_in_order_one_at_a_time(connection, fake_server, infer):
    connection.send(infer(request_id="a") + infer(request_id="b") + infer(request_id="c"))
    in_flight = []
    while len(fake_server.calls) > len(in_flight):
        in_flight.append(len(fake_server.calls))
        fake_server.calls[-1].answer()

    assert in_flight == [1, 2, 3]
    assert [json.loads(answer.body)["id"] for answer in connection.answers()] == ["a", "b", "c"]


def test_a_thousand_pipelined_requests_answered_at_once_do_not_pile_up(connection, fake_server, infer):
    fake_server.at_once = True

    connection.send(infer() * 5000)
    connection.loop.move(0)

    assert len(connection.answers()) == 5000


def test_a_client_that_pipelines_too_much_is_not_read_for_a_while(connection, fake_server, infer):
    connection.send(infer() * 1000)
    paused = connection.transport.reading_paused
    fake_server.at_once = True
    fake_server.calls[0].answer()
    connection.loop.move(0)

    assert paused
    assert not connection.transport.reading_paused
    assert len(connection.answers()) > 300


def test_pipelined_requests_that_are_answered_one_by_one_do_not_pile_up(connection, fake_server, infer):
    most, sent = 0, 0
    for answered in range(2000):
        if not connection.transport.reading_paused:
            connection.send(infer() * 100)
            sent += 100
        fake_server.calls[answered].answer()
        connection.loop.move(0)
        most = max(most, len(connection.protocol._reader.kept))

    assert most <= connection.context.most_pipelined + LONGEST_HEAD
    assert sent < 3000


def test_a_head_longer_than_what_may_wait_is_read_to_its_end(connect, fake_server, infer):
    connection = connect(most_pipelined=100)
    late = infer((), "late", "A: " + "a" * 2000)
    connection.send(infer() + late[:1000])
    connection.send(late[1000:1500])
    paused = connection.transport.reading_paused
    fake_server.calls[0].answer()
    read_on = not connection.transport.reading_paused
    connection.send(late[1500:])

    assert (paused, read_on, fake_server.calls[1].request.id) == (True, True, "late")


def test_a_stream_that_fills_the_connection_while_it_is_submitted_waits(connection, fake_server, generate):
    def submit(request, deliver, streams=False):
        call = fake_server.submit(request, deliver, streams)
        connection.protocol.pause_writing()
        return call

    connection.context.submit = submit
    connection.send(generate())

    assert fake_server.calls[0].paused


def test_no_request_starts_while_the_client_does_not_read(connection, fake_server, infer):
    connection.send(infer(request_id="a"))
    connection.protocol.pause_writing()
    fake_server.calls[0].answer()
    connection.send(infer(request_id="b"))
    before = len(fake_server.calls)
    connection.protocol.resume_writing()

    assert (before, len(fake_server.calls)) == (1, 2)


@pytest.mark.parametrize("coding", ["Content-Length", "chunked"])
def test_a_body_on_its_way_is_taken_in_even_while_the_client_does_not_read(connection, fake_server, coding, infer):
    request = infer([1], "late")
    if coding == "chunked":
        head, _, body = request.partition(b"\r\n\r\n")
        lines = [line for line in head.split(b"\r\n") if not line.startswith(b"Content-Length")]
        request = b"\r\n".join([*lines, b"Transfer-Encoding: chunked", b"", b"%x" % len(body), body, b"0", b"", b""])
    connection.send(request[:-7])
    connection.protocol.pause_writing()
    connection.send(request[-7:])

    assert [call.request.id for call in fake_server.calls] == ["late"]


@pytest.mark.parametrize(("header", "version"), [("Connection: close", "HTTP/1.1"), ("A: b", "HTTP/1.0")])
def test_a_connection_that_is_not_to_be_kept_is_closed_behind_the_answer(
    connection, fake_server, header, version, infer
):
    connection.send(infer((), "", header, version=version))
    fake_server.calls[0].answer()

    assert connection.answers()[0].headers["connection"] == "close"
    assert connection.transport.closed


def test_a_large_answer_is_written_without_a_copy(connection, fake_server):
    array = np.zeros(100_000, np.uint8)
    body = b'{"inputs":[],"parameters":{"binary_data_output":true}}'

    connection.send(b"POST /v2/models/m/infer HTTP/1.1\r\nHost: h\r\nContent-Length: %d\r\n\r\n%b" % (len(body), body))
    fake_server.calls[0].deliver(Response("m", 1, "", {"Y": Tensor.of("Y", array)}))

    (vector,) = connection.transport.vectors
    assert np.shares_memory(np.frombuffer(vector[-1], np.uint8), array)
    assert connection.answers()[0].headers["content-type"] == "application/octet-stream"


def test_a_refusal_of_the_server_is_notified_and_the_connection_kept(connection, fake_server, infer):
    fake_server.refusal = QueueFullError("the queue is full", retry_after=2)
    connection.send(infer(request_id="7"))
    fake_server.refusal = None
    connection.send(infer())
    fake_server.calls[0].deliver(ModelFailedError("it broke"))

    first, second = connection.answers()
    assert (first.status, first.headers["retry-after"]) == (503, "2")
    assert json.loads(first.body) == {"error": "[request id: 7] the queue is full"}
    assert (second.status, json.loads(second.body)) == (500, {"error": "it broke"})


def test_a_bug_of_ours_is_a_500_without_its_traceback(connection, fake_server, caplog, infer):
    fake_server.refusal = ZeroDivisionError("secret detail")

    connection.send(infer())

    (answer,) = connection.answers()
    assert (answer.status, json.loads(answer.body)) == (
        500,
        {"error": "the server failed to answer; its log tells why"},
    )
    assert "ZeroDivisionError: secret detail" in caplog.text


def test_outputs_that_cannot_be_encoded_are_a_500(connection, fake_server, caplog, infer):
    connection.send(infer())
    fake_server.calls[0].deliver(Response("m", 1, "", {"Y": Tensor("Y", "FP32", (1,), np.array([{}], dtype=object))}))

    assert connection.answers()[0].status == 500
    assert "unexpected error" in caplog.text


def test_a_client_that_waits_for_our_word_gets_it(connection, fake_server, infer):
    head, _, body = infer((), "", "Expect: 100-continue").partition(b"\r\n\r\n")
    connection.send(head + b"\r\n\r\n")
    word, connection.transport.written = connection.transport.written, b""
    connection.send(body)

    assert word == b"HTTP/1.1 100 Continue\r\n\r\n"
    assert len(fake_server.calls) == 1


def test_an_infer_head_that_is_invalid_is_answered_behind_its_body(connection, fake_server, infer):
    wrong = infer().replace(b"/m/", b"/m/versions/0/")
    connection.send(wrong + infer())
    fake_server.calls[0].answer()

    assert [answer.status for answer in connection.answers()] == [400, 200]


def test_the_date_is_reported_once_it_is_known(connection, fake_server, infer):
    connection.context.date = b"Date: today\r\n"
    connection.send(infer())
    fake_server.calls[0].answer()

    assert connection.answers()[0].headers["date"] == "today"


def test_a_timeout_of_the_caller_becomes_a_deadline(connection, fake_server, infer):
    connection.send(infer((), "", "Request-Timeout: 60") + infer())
    fake_server.calls[0].answer()

    timed, untimed = (call.request.deadline for call in fake_server.calls)
    assert timed > 0
    assert untimed is None
