"""One connection: what it writes, submits and gives up, over a transport and a clock of the test's own."""

import asyncio
import json
from heapq import heappop, heappush
from types import SimpleNamespace

import numpy as np
import pytest
from uvicorn.server import ServerState

from naiad.errors import ModelFailedError, QueueFullError
from naiad.types import Response, Tensor
from naiad_http.idle import IDLE_SECONDS
from naiad_http.protocol import LINGER_SECONDS, HttpProtocol


class FakeTransport(asyncio.Transport):
    """Takes everything; `unsent` pretends that the client has not read so many bytes."""

    def __init__(self):
        super().__init__()
        self.written = b""
        self.vectors = []
        self.unsent = 0
        self.closed = self.aborted = self.eof = self.reading_paused = False

    def write(self, data):
        assert not self.eof
        self.written += data

    def writelines(self, list_of_data):
        self.vectors.append(list(list_of_data))
        self.written += b"".join(self.vectors[-1])

    def get_write_buffer_size(self):
        return self.unsent

    def can_write_eof(self):
        return True

    def write_eof(self):
        self.eof = True

    def close(self):
        self.closed = True

    def abort(self):
        self.aborted = True

    def is_closing(self):
        return self.closed or self.aborted

    def pause_reading(self):
        self.reading_paused = True

    def resume_reading(self):
        self.reading_paused = False


class FakeLoop:
    """A loop with a clock that a test moves."""

    def __init__(self):
        self.now = 1000.0
        self._timers = []

    def time(self):
        return self.now

    def call_later(self, delay, callback):
        timer = SimpleNamespace(cancelled=False)
        timer.cancel = lambda: setattr(timer, "cancelled", True)
        heappush(self._timers, (self.now + delay, id(timer), timer, callback))
        return timer

    def move(self, seconds):
        end = self.now + seconds
        while self._timers and self._timers[0][0] <= end:
            self.now, _, timer, callback = heappop(self._timers)
            if not timer.cancelled:
                callback()
        self.now = end


class Connection:
    """A protocol on its fake transport and loop."""

    def __init__(self, site):
        self.state = ServerState()
        self.loop = FakeLoop()
        self.transport = FakeTransport()
        self.protocol = HttpProtocol(site, None, self.state, {}, self.loop)
        self.protocol.connection_made(self.transport)

    def send(self, content, step=None):
        place = 0
        while place < len(content) and not self.transport.closed:
            buffer = self.protocol.get_buffer(-1)
            count = min(len(buffer), len(content) - place, step or len(content))
            buffer[:count] = content[place : place + count]
            place += count
            self.protocol.buffer_updated(count)

    def answers(self):
        """The status, headers and body of every answer that was written."""
        rest, found = self.transport.written, []
        while rest:
            head, _, rest = rest.partition(b"\r\n\r\n")
            first, *lines = head.decode().split("\r\n")
            headers = dict(line.lower().split(": ", 1) for line in lines)
            length = int(headers.get("content-length", 0))
            found.append(SimpleNamespace(status=int(first.split()[1]), headers=headers, body=rest[:length]))
            rest = rest[length:]
        return found


@pytest.fixture
def connection(make_site):
    return Connection(make_site())


def infer(values=(1, 2), request_id="", *headers, version="HTTP/1.1"):
    """The bytes of an infer request with one binary INT8 tensor."""
    content = np.array(values, np.int8).tobytes()
    tensor = {
        "name": "X",
        "datatype": "INT8",
        "shape": [len(values)],
        "parameters": {"binary_data_size": len(content)},
    }
    front = json.dumps({"id": request_id, "inputs": [tensor]}).encode()
    lines = [
        f"POST /v2/models/m/infer {version}",
        f"Inference-Header-Content-Length: {len(front)}",
        f"Content-Length: {len(front) + len(content)}",
        *headers,
    ]
    return "".join(f"{line}\r\n" for line in lines).encode() + b"\r\n" + front + content


@pytest.mark.parametrize("step", [None, 1, 7])
def test_a_request_goes_to_the_server_and_its_answer_back(connection, fake_server, step):
    connection.send(infer([3, 4], "42"), step)
    (call,) = fake_server.calls
    call.answer()

    (answer,) = connection.answers()
    assert call.request.inputs["X"].array.tolist() == [3, 4]
    assert (answer.status, json.loads(answer.body)["id"]) == (200, "42")
    assert json.loads(answer.body)["outputs"][0]["data"] == [3, 4]
    assert not connection.transport.closed


def test_pipelined_requests_are_answered_in_order_one_at_a_time(connection, fake_server):
    connection.send(infer(request_id="a") + infer(request_id="b") + infer(request_id="c"))
    in_flight = []
    while len(fake_server.calls) > len(in_flight):
        in_flight.append(len(fake_server.calls))
        fake_server.calls[-1].answer()

    assert in_flight == [1, 2, 3]
    assert [json.loads(answer.body)["id"] for answer in connection.answers()] == ["a", "b", "c"]


def test_a_thousand_pipelined_requests_answered_at_once_do_not_pile_up(connection, fake_server):
    fake_server.at_once = True

    connection.send(infer() * 5000)

    assert len(connection.answers()) == 5000


def test_a_client_that_pipelines_too_much_is_not_read_for_a_while(connection, fake_server):
    connection.send(infer() * 1000)
    paused = connection.transport.reading_paused
    fake_server.at_once = True
    fake_server.calls[0].answer()

    assert paused
    assert not connection.transport.reading_paused
    assert len(connection.answers()) > 300


def test_no_request_starts_while_the_client_does_not_read(connection, fake_server):
    connection.send(infer(request_id="a"))
    connection.protocol.pause_writing()
    fake_server.calls[0].answer()
    connection.send(infer(request_id="b"))
    before = len(fake_server.calls)
    connection.protocol.resume_writing()

    assert (before, len(fake_server.calls)) == (1, 2)


@pytest.mark.parametrize("coding", ["Content-Length", "chunked"])
def test_a_body_on_its_way_is_taken_in_even_while_the_client_does_not_read(connection, fake_server, coding):
    request = infer([1], "late")
    if coding == "chunked":
        head, _, body = request.partition(b"\r\n\r\n")
        lines = [line for line in head.split(b"\r\n") if not line.startswith(b"Content-Length")]
        request = b"\r\n".join([*lines, b"Transfer-Encoding: chunked", b"", b"%x" % len(body), body, b"0", b"", b""])
    connection.send(request[:-7])
    connection.protocol.pause_writing()
    connection.send(request[-7:])

    assert [call.request.id for call in fake_server.calls] == ["late"]


@pytest.mark.parametrize("request_", [infer((), "", "Connection: close"), infer(version="HTTP/1.0")])
def test_a_connection_that_is_not_to_be_kept_is_closed_behind_the_answer(connection, fake_server, request_):
    connection.send(request_)
    fake_server.calls[0].answer()

    assert connection.answers()[0].headers["connection"] == "close"
    assert connection.transport.closed


def test_a_large_answer_is_written_without_a_copy(connection, fake_server):
    array = np.zeros(100_000, np.uint8)
    body = b'{"inputs":[],"parameters":{"binary_data_output":true}}'

    connection.send(b"POST /v2/models/m/infer HTTP/1.1\r\nContent-Length: %d\r\n\r\n%b" % (len(body), body))
    fake_server.calls[0].deliver(Response("m", 1, "", {"Y": Tensor.of("Y", array)}))

    (vector,) = connection.transport.vectors
    assert np.shares_memory(np.frombuffer(vector[-1], np.uint8), array)
    assert connection.answers()[0].headers["content-type"] == "application/octet-stream"


def test_a_refusal_of_the_server_is_told_and_the_connection_kept(connection, fake_server):
    fake_server.refusal = QueueFullError("the queue is full", retry_after=2)
    connection.send(infer(request_id="7"))
    fake_server.refusal = None
    connection.send(infer())
    fake_server.calls[0].deliver(ModelFailedError("it broke"))

    first, second = connection.answers()
    assert (first.status, first.headers["retry-after"]) == (503, "2")
    assert json.loads(first.body) == {"error": "[request id: 7] the queue is full"}
    assert (second.status, json.loads(second.body)) == (500, {"error": "it broke"})


def test_a_bug_of_ours_is_a_500_without_its_traceback(connection, fake_server, caplog):
    fake_server.refusal = ZeroDivisionError("secret detail")

    connection.send(infer())

    (answer,) = connection.answers()
    assert (answer.status, json.loads(answer.body)) == (
        500,
        {"error": "the server failed to answer; its log tells why"},
    )
    assert "ZeroDivisionError: secret detail" in caplog.text


def test_outputs_that_cannot_be_encoded_are_a_500(connection, fake_server, caplog):
    connection.send(infer())
    fake_server.calls[0].deliver(Response("m", 1, "", {"Y": Tensor("Y", "FP32", (1,), np.array([{}], dtype=object))}))

    assert connection.answers()[0].status == 500
    assert "unexpected error" in caplog.text


def test_a_model_that_streams_cannot_be_asked_here(connection, fake_server):
    connection.send(infer())
    fake_server.calls[0].answer(final=False)

    (answer,) = connection.answers()
    assert answer.status == 501
    assert "decoupled transaction policy" in json.loads(answer.body)["error"]
    assert fake_server.calls[0].cancelled


@pytest.mark.parametrize("end", ["eof_received", "connection_lost"])
def test_the_request_of_a_client_that_left_is_taken_back(connection, fake_server, end):
    connection.send(infer())
    connection.protocol.connection_lost(None) if end == "connection_lost" else connection.protocol.eof_received()

    assert fake_server.calls[0].cancelled
    assert connection.transport.written == b""


def test_a_lost_connection_is_forgotten(connection):
    connection.protocol.connection_lost(None)

    connection.loop.move(1000)
    assert connection.state.connections == set()
    assert not connection.transport.aborted


def test_a_client_that_waits_for_our_word_gets_it(connection, fake_server):
    head, _, body = infer((), "", "Expect: 100-continue").partition(b"\r\n\r\n")
    connection.send(head + b"\r\n\r\n")
    word, connection.transport.written = connection.transport.written, b""
    connection.send(body)

    assert word == b"HTTP/1.1 100 Continue\r\n\r\n"
    assert len(fake_server.calls) == 1


def test_a_body_that_ends_too_early_is_told_so(connection, fake_server):
    connection.send(infer()[:-1])
    connection.protocol.eof_received()

    (answer,) = connection.answers()
    assert (answer.status, fake_server.calls) == (400, [])
    assert "of the" in json.loads(answer.body)["error"]
    assert "that Content-Length says" in json.loads(answer.body)["error"]


def test_a_body_longer_than_it_says_is_a_malformed_next_request(connection, fake_server):
    connection.send(infer() + b"surplus bytes\r\n\r\n")
    fake_server.calls[0].answer()

    assert [answer.status for answer in connection.answers()] == [200, 400]


def test_too_large_a_body_is_refused_and_its_bytes_go_by_unread(make_site, fake_server):
    connection = Connection(make_site(limit=1000))
    connection.send(b"POST /v2/models/m/infer HTTP/1.1\r\nContent-Length: 50000\r\n\r\n")
    refused_at_once = connection.answers()[0]
    connection.send(bytes(50_000) + infer())
    open_still = not connection.transport.closed
    connection.loop.move(LINGER_SECONDS)

    assert (refused_at_once.status, refused_at_once.headers["connection"]) == (400, "close")
    assert "Use --http-max-input-size to increase the limit." in json.loads(refused_at_once.body)["error"]
    assert (connection.transport.eof, open_still, connection.transport.closed) == (True, True, True)
    assert len(connection.answers()) == 1
    assert fake_server.calls == []


@pytest.mark.parametrize("garbage", [b"\x16\x03\x01\x00\x00\r\n\r\n", b"GET / HTTP/3.0\r\n\r\n", b"\x00" * 200_000])
def test_what_is_no_http_is_told_so(connection, garbage):
    connection.send(garbage)

    (answer,) = connection.answers()
    assert answer.status in (400, 431, 505)
    assert json.loads(answer.body)["error"]
    assert connection.transport.eof


def test_an_infer_head_that_makes_no_sense_is_answered_behind_its_body(connection, fake_server):
    wrong = infer().replace(b"/m/", b"/m/versions/0/")
    connection.send(wrong + infer())
    fake_server.calls[0].answer()

    assert [answer.status for answer in connection.answers()] == [400, 200]


def test_an_idle_connection_is_closed_in_time(connection, fake_server):
    fake_server.at_once = True
    connection.loop.move(IDLE_SECONDS - 1)
    connection.send(infer())
    connection.loop.move(IDLE_SECONDS - 1)
    open_still = not connection.transport.closed
    connection.loop.move(1)

    assert (open_still, connection.transport.closed) == (True, True)


def test_a_torso_that_stays_one_is_told_so(connection):
    connection.send(infer()[:-1])

    connection.loop.move(IDLE_SECONDS + 1)

    (answer,) = connection.answers()
    assert (answer.status, connection.transport.closed) == (408, True)


def test_a_slow_upload_that_moves_is_not_idle(connection, fake_server):
    request = infer()
    for place in range(0, len(request), 20):
        connection.send(request[place : place + 20])
        connection.loop.move(IDLE_SECONDS / 2)

    assert len(fake_server.calls) == 1


def test_a_client_that_waits_for_a_slow_model_is_not_idle(connection):
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


def test_a_stopping_server_still_answers_what_is_in_flight(connection, fake_server):
    connection.send(infer())
    connection.protocol.shutdown()
    open_still = not connection.transport.closed
    fake_server.calls[0].answer()

    assert open_still
    assert connection.answers()[0].headers["connection"] == "close"
    assert connection.transport.closed


def test_a_stopping_server_takes_the_rest_of_a_body(connection, fake_server):
    request = infer()
    connection.send(request[:-1])
    connection.protocol.shutdown()
    connection.send(request[-1:])
    fake_server.calls[0].answer()

    assert connection.answers()[0].status == 200
    assert connection.transport.closed


def test_the_date_is_told_once_it_is_known(make_site, fake_server):
    site = make_site()
    site.date = b"Date: today\r\n"
    connection = Connection(site)
    connection.send(infer())
    fake_server.calls[0].answer()

    assert connection.answers()[0].headers["date"] == "today"


def test_a_timeout_of_the_caller_becomes_a_deadline(connection, fake_server):
    connection.send(infer((), "", "Request-Timeout: 60") + infer())
    fake_server.calls[0].answer()

    timed, untimed = (call.request.deadline for call in fake_server.calls)
    assert timed > 0
    assert untimed is None
