"""generate and generate_stream for clients that read slowly, close or leave, and at the end of the server."""

import pytest

from naiad_kit.frontends.connection_limits import IDLE_SECONDS

from .events import texts


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


def test_a_response_that_says_keep_alive_keeps_the_connection_although_the_server_begins_to_drain(
    streaming, fake_server, infer
):
    streaming.call.send("one")
    streaming.loop.move(0)
    streaming.protocol.drain()
    streaming.call.end()
    kept = not streaming.transport.closed
    fake_server.at_once = True
    streaming.send(infer())

    first, second = (answer.headers.get("connection") for answer in streaming.answers())
    assert (first, kept) == (None, True)
    assert (second, streaming.transport.closed) == ("close", True)


def test_a_stream_that_does_not_end_in_time_is_ended_with_a_word(streaming):
    streaming.call.send("one")
    streaming.loop.move(0)
    streaming.protocol.shutdown()
    streaming.protocol.conclude()

    (answer,) = streaming.answers()
    assert "the server stopped" in texts(answer)[1]["error"]
    assert (streaming.call.cancelled, streaming.transport.closed) == (True, True)
