"""Limits of a connection: the seconds of a head and a body, the number of connections, and bytes in flight."""

import json
import socket

import pytest

from naiad_http import limits
from naiad_http.limits import SPARE_CONNECTIONS, SPARE_SECONDS, Limits
from naiad_kit.frontends.byte_budget import ByteBudget
from naiad_kit.frontends.connection_limits import BODY_SECONDS, HEAD_SECONDS, IDLE_SECONDS

from .conftest import Connection, FakeLoop

FEW = {"limits": Limits(connections=2)}


def trickle(connection, content, seconds):
    """Send a byte a second until the connection is closed; the seconds that it took."""
    for second in range(seconds):
        connection.send(content[second : second + 1])
        connection.loop.move(1)
        if connection.transport.closed:
            return second + 1
    return seconds


def test_a_head_that_trickles_in_is_refused_in_time(connection):
    took = trickle(connection, b"GET /v2 HTTP/1.1\r\nA: " + b"a" * 1000, 200)

    (answer,) = connection.answers()
    assert (answer.status, took) == (408, HEAD_SECONDS)
    assert "the head took longer than 20 seconds" in json.loads(answer.body)["error"]
    assert "--http-head-seconds" in json.loads(answer.body)["error"]


@pytest.mark.parametrize("framing", ["Content-Length: 5000", "Transfer-Encoding: chunked"])
def test_a_body_that_trickles_in_is_refused_in_time(connection, framing):
    connection.send(f"POST /v2/models/m/infer HTTP/1.1\r\nHost: h\r\n{framing}\r\n\r\n".encode())
    took = trickle(connection, b"400\r\n" + b"a" * 1000, 200)

    (answer,) = connection.answers()
    assert (answer.status, took) == (408, BODY_SECONDS + 1)
    assert "--http-body-seconds" in json.loads(answer.body)["error"]


def test_each_request_of_a_connection_has_its_own_time(connection, fake_server, infer):
    fake_server.at_once = True

    for _ in range(5):
        request = infer()
        connection.send(request[:30])
        connection.loop.move(HEAD_SECONDS - 1)
        connection.send(request[30:-1])
        connection.loop.move(BODY_SECONDS - 1)
        connection.send(request[-1:])

    assert len(connection.answers()) == 5


def test_the_options_set_the_times(connect):
    connection = connect(limits=Limits(idle=3, head=1, body=2))

    connection.send(b"GET /v2")
    connection.loop.move(1)

    assert connection.answers()[0].status == 408


def test_whole_requests_set_no_timers(connection, fake_server, infer):
    fake_server.at_once = True
    before = connection.loop._count
    for _ in range(1000):
        connection.send(infer())

    assert connection.loop._count - before <= 1000 // 64  # the turns of the loop


def join(context, loop, state):
    """One more connection of the same listener."""
    return Connection(context, loop=loop, state=state)


def test_a_new_client_gets_the_connection_of_one_that_idles(make_context, fake_server, infer):
    fake_server.at_once = True
    context, loop = make_context(**FEW), FakeLoop()
    idle = join(context, loop, None)
    loop.move(2)
    fresh = join(context, loop, idle.state)
    late = join(context, loop, idle.state)
    late.send(infer())

    assert (idle.transport.closed, fresh.transport.closed) == (True, False)
    assert late.answers()[0].status == 200


def test_above_the_limit_a_busy_server_refuses_requests_to_models(make_context, fake_server, infer):
    context, loop = make_context(**FEW), FakeLoop()
    first = join(context, loop, None)
    busy = [first, join(context, loop, first.state)]
    for each in busy:
        each.send(infer())
    loop.move(5)
    late = join(context, loop, first.state)
    late.send(infer())

    (answer,) = late.answers()
    assert (answer.status, answer.headers["retry-after"], late.transport.closed) == (503, "1", True)
    assert "--http-max-connections" in json.loads(answer.body)["error"]
    assert len(fake_server.calls) == 2


def test_far_above_the_limit_silent_clients_give_way_to_later_ones(make_context):
    context, loop = make_context(**FEW), FakeLoop()
    first = join(context, loop, None)
    others = [join(context, loop, first.state) for _ in range(SPARE_CONNECTIONS + 5)]
    closed_at_once = sum(each.transport.closed for each in others)
    loop.move(SPARE_SECONDS)
    closed_soon = sum(each.transport.closed for each in others)

    assert (closed_at_once, closed_soon) == (4, SPARE_CONNECTIONS + 4)
    assert [each.transport.closed for each in others[:6]] == [False, True, True, True, True, True]


def test_far_above_the_limit_health_is_answered_among_silent_clients(make_context):
    context, loop = make_context(**FEW), FakeLoop()
    first = join(context, loop, None)
    for _ in range(SPARE_CONNECTIONS + 5):
        silent = join(context, loop, first.state)
        silent.send(b"GET /v2")
    probe = join(context, loop, first.state)
    probe.protocol._start = lambda _message: None  # it is taken up, and not answered yet
    probe.send(b"GET /v2/health/live HTTP/1.1\r\nHost: h\r\n\r\n")
    for _ in range(SPARE_CONNECTIONS + 5):
        join(context, loop, first.state)

    assert not probe.transport.closed


def test_far_above_the_limit_a_client_does_not_give_way_before_its_request_was_read(make_context):
    context, loop = make_context(**FEW), FakeLoop()
    first = join(context, loop, None)
    join(context, loop, first.state)
    probe = join(context, loop, first.state)
    probe.transport.socket, client = socket.socketpair()
    with probe.transport.socket, client:
        client.send(b"GET /v2/health/live HTTP/1.1\r\nHost: h\r\n\r\n")
        for _ in range(2 * SPARE_CONNECTIONS):
            join(context, loop, first.state)

        assert not probe.transport.closed


def test_far_above_the_limit_clients_are_refused_while_all_others_work(make_context):
    context, loop = make_context(**FEW), FakeLoop()
    first = join(context, loop, None)
    for _ in range(SPARE_CONNECTIONS + 1):
        busy = join(context, loop, first.state)
        busy.protocol._start = lambda _message: None
        busy.send(b"GET /v2/health/live HTTP/1.1\r\nHost: h\r\n\r\n")
    late = join(context, loop, first.state)

    assert (late.answers()[0].status, late.transport.closed) == (503, True)


def test_the_default_keeps_files_for_other_things(monkeypatch):
    resource = pytest.importorskip("resource")
    monkeypatch.setattr(resource, "getrlimit", lambda _: (1000, 1000))

    assert 400 < limits.default_connections() < 1000 - 375


def test_a_large_body_is_reserved_as_it_comes_and_until_its_answer(connect, fake_server, infer):
    budget = ByteBudget(2_100_000)
    connection = connect(budget=budget)
    request = infer([1] * 900_000)
    connection.send(request[:1000])
    at_the_head = budget.reserved
    connection.send(request[1000:])
    executing = budget.reserved
    fake_server.calls[0].answer()

    assert 0 < at_the_head < 270_000
    assert 900_000 < executing < len(request)
    assert budget.reserved == 0


def test_heads_of_large_bodies_alone_leave_room_for_others(connect, fake_server, infer):
    budget = ByteBudget(2_100_000)
    request = infer([1] * 900_000)
    for _ in range(4):
        connect(budget=budget).send(request[:1000])
    honest = connect(budget=budget)

    honest.send(request)

    assert len(fake_server.calls) == 1


def test_a_body_that_passes_the_budget_on_its_way_is_refused(connect, infer):
    budget = ByteBudget(2_100_000)
    request = infer([1] * 900_000)
    first, second = connect(budget=budget), connect(budget=budget)
    second.send(request[:1000])
    budget.add(1_500_000)

    second.send(request[1000:])
    budget.release(1_500_000)

    assert [answer.status for answer in second.answers()] == [503]
    assert (first.answers(), budget.reserved) == ([], 0)


def test_a_body_above_the_budget_is_refused_at_its_head(connect, fake_server, infer):
    connection = connect(budget=ByteBudget(100_000))

    connection.send(infer([1] * 200_000)[:1000])

    (answer,) = connection.answers()
    assert (answer.status, answer.headers["retry-after"]) == (503, "1")
    assert "--max-bytes-in-flight" in json.loads(answer.body)["error"]
    assert connection.context.budget.reserved == 0


def chunked_request(size):
    head = b"POST /v2/models/m/infer HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n"
    return head + b"%x\r\n" % size + bytes(size)


def test_a_chunked_body_is_reserved_as_it_comes(connect):
    budget = ByteBudget(300_000)
    connection = connect(budget=budget)
    request = chunked_request(900_000)
    connection.send(request[:50_000])
    small = budget.reserved
    connection.send(request[50_000:200_000])
    large = budget.reserved
    connection.send(request[200_000:500_000])

    assert (small, 190_000 < large < 200_000, budget.reserved) == (0, True, 0)
    assert connection.answers()[0].status == 503


@pytest.mark.parametrize("chunked", [False, True])
def test_a_client_that_leaves_within_its_body_gives_its_bytes_back(connect, infer, chunked):
    budget = ByteBudget(1_000_000)
    connection = connect(budget=budget)
    request = chunked_request(200_000) if chunked else infer([1] * 200_000)

    connection.send(request[:100_000])
    taken = budget.reserved
    connection.protocol.connection_lost(None)

    assert (taken > 90_000, budget.reserved) == (True, 0)


def test_answers_that_wait_for_their_reader_count(connect):
    budget = ByteBudget(1_000_000)
    connection = connect(budget=budget)
    connection.transport.unsent = 500_000
    connection.protocol.pause_writing()
    waiting = budget.reserved
    connection.protocol.resume_writing()
    after = budget.reserved
    connection.protocol.pause_writing()
    connection.protocol.connection_lost(None)

    assert (waiting, after, budget.reserved) == (500_000, 0, 0)


def test_pipelined_bytes_count_while_they_wait(connect, fake_server, infer):
    budget = ByteBudget(1_000_000)
    connection = connect(budget=budget, most_pipelined=500_000)
    connection.send(infer() * 2000)
    waiting = budget.reserved
    fake_server.at_once = True
    fake_server.calls[0].answer()
    connection.loop.move(0)

    assert (waiting > 100_000, budget.reserved) == (True, 0)


def test_a_draining_server_closes_behind_the_next_answer_and_not_before(connect, fake_server, infer):
    fake_server.at_once = True
    connection = connect()
    connection.protocol.drain()
    open_still = not connection.transport.closed
    connection.send(infer())

    assert open_still
    assert connection.answers()[0].headers["connection"] == "close"
    assert connection.transport.closed


def test_a_silent_connection_of_a_draining_server_idles_on(connect):
    connection = connect()
    connection.protocol.drain()

    connection.loop.move(IDLE_SECONDS - 1)

    assert not connection.transport.closed
