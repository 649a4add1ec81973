"""How one connection ends: clients that leave, stop, send nonsense or too much, and a server that stops."""

import json

import pytest

from naiad_http.connection import GOODBYE_SECONDS, LINGER_SECONDS
from naiad_kit.frontends.connection_limits import IDLE_SECONDS


@pytest.mark.parametrize("end", ["eof_received", "connection_lost"])
def test_the_request_of_a_client_that_left_is_taken_back(connection, fake_server, end, infer):
    connection.send(infer())
    connection.protocol.connection_lost(None) if end == "connection_lost" else connection.protocol.eof_received()

    assert fake_server.calls[0].cancelled
    assert connection.transport.written == b""


def test_a_lost_connection_is_forgotten(connection):
    connection.protocol.connection_lost(None)

    connection.loop.move(1000)
    assert connection.state.connections == set()
    assert not connection.transport.aborted


def test_a_body_that_ends_too_early_is_reported(connection, fake_server, infer):
    connection.send(infer()[:-1])
    connection.protocol.eof_received()

    (answer,) = connection.answers()
    assert (answer.status, fake_server.calls) == (400, [])
    assert "of the" in json.loads(answer.body)["error"]
    assert "that Content-Length says" in json.loads(answer.body)["error"]


def test_a_body_longer_than_it_says_is_a_malformed_next_request(connection, fake_server, infer):
    connection.send(infer() + b"surplus bytes\r\n\r\n")
    fake_server.calls[0].answer()

    assert [answer.status for answer in connection.answers()] == [200, 400]


def test_too_large_a_body_is_refused_and_its_bytes_go_by_unread(connect, fake_server, infer):
    connection = connect(limit=1000)
    connection.send(b"POST /v2/models/m/infer HTTP/1.1\r\nHost: h\r\nContent-Length: 50000\r\n\r\n")
    refused_at_once = connection.answers()[0]
    connection.send(bytes(50_000) + infer())
    open_still = not connection.transport.closed
    connection.loop.move(LINGER_SECONDS)

    assert (refused_at_once.status, refused_at_once.headers["connection"]) == (400, "close")
    assert "--http-max-input-size" in json.loads(refused_at_once.body)["error"]
    assert (connection.transport.eof, open_still, connection.transport.closed) == (True, True, True)
    assert len(connection.answers()) == 1
    assert fake_server.calls == []


def test_an_idle_connection_is_closed_in_time(connection, fake_server, infer):
    fake_server.at_once = True
    connection.loop.move(IDLE_SECONDS - 1)
    connection.send(infer())
    connection.loop.move(IDLE_SECONDS - 1)
    open_still = not connection.transport.closed
    connection.loop.move(1)

    assert (open_still, connection.transport.closed) == (True, True)


def test_a_torso_that_stays_one_is_reported(connection, infer):
    connection.send(infer()[:-1])

    connection.loop.move(IDLE_SECONDS + 1)

    (answer,) = connection.answers()
    assert (answer.status, connection.transport.closed) == (408, True)


def test_a_large_upload_over_a_slow_line_is_not_cut_off(connection, fake_server, infer):
    request = infer([1] * 900_000)
    for start in range(0, len(request), 8192):
        connection.send(request[start : start + 8192])
        connection.loop.move(1)

    assert len(fake_server.calls) == 1


def test_a_client_that_waits_for_a_slow_model_is_not_idle(connection, infer):
    connection.send(infer())

    connection.loop.move(10 * IDLE_SECONDS)

    assert not connection.transport.closed


def test_a_client_that_reads_nothing_is_cut_off(connection):
    connection.transport.unsent = 5000
    connection.loop.move(IDLE_SECONDS + 1)
    connection.transport.unsent = 4000
    connection.loop.move(IDLE_SECONDS + 1)
    reading_slowly = not connection.transport.aborted
    connection.loop.move(IDLE_SECONDS + 1)

    assert (reading_slowly, connection.transport.aborted) == (True, True)


def test_a_stopping_server_closes_idle_connections_at_once(connection):
    connection.protocol.shutdown()

    assert connection.transport.closed


def test_a_stopping_server_still_answers_what_is_in_flight(connection, fake_server, infer):
    connection.send(infer())
    connection.protocol.shutdown()
    open_still = not connection.transport.closed
    fake_server.calls[0].answer()

    assert open_still
    assert connection.answers()[0].headers["connection"] == "close"
    assert connection.transport.closed


def test_a_stopping_server_takes_the_rest_of_a_body(connection, fake_server, infer):
    request = infer()
    connection.send(request[:-1])
    connection.protocol.shutdown()
    connection.send(request[-1:])
    fake_server.calls[0].answer()

    assert connection.answers()[0].status == 200
    assert connection.transport.closed


def test_over_tls_a_stopping_server_does_not_wait_long_for_the_goodbye_of_idle_clients(connect):
    connection = connect(secure=True)
    connection.protocol.shutdown()
    closed_only = (connection.transport.closed, connection.transport.aborted)
    connection.loop.move(GOODBYE_SECONDS)

    assert closed_only == (True, False)
    assert connection.transport.aborted


def test_over_tls_a_stopping_server_waits_for_clients_that_read(connect, fake_server, infer):
    connection = connect(secure=True)
    connection.send(infer())
    connection.protocol.shutdown()
    connection.transport.unsent = 5000
    fake_server.calls[0].answer()
    connection.loop.move(3 * GOODBYE_SECONDS)
    reading = not connection.transport.aborted
    connection.transport.unsent = 0
    connection.loop.move(GOODBYE_SECONDS)

    assert (reading, connection.transport.aborted) == (True, True)


def test_over_tls_a_client_that_never_says_goodbye_is_cut_off(connect, fake_server, infer):
    fake_server.at_once = True
    connection = connect(secure=True)
    connection.send(infer((1,), "", "Connection: close"))
    connection.loop.move(IDLE_SECONDS - 1)
    waiting = not connection.transport.aborted
    connection.loop.move(2)

    assert (connection.transport.closed, waiting, connection.transport.aborted) == (True, True, True)


def test_a_client_whose_answer_does_not_come_in_time_is_reported(connection, fake_server, infer):
    connection.send(infer())
    connection.protocol.shutdown()
    connection.protocol.conclude()

    (answer,) = connection.answers()
    assert (answer.status, answer.headers["connection"], answer.headers["retry-after"]) == (503, "close", "1")
    assert "the server stopped before the request was answered" in json.loads(answer.body)["error"]
    assert (fake_server.calls[0].cancelled, connection.transport.closed) == (True, True)
