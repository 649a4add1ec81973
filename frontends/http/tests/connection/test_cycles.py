"""The ASGI cycle: what an application sends as bytes on the connection, and what becomes of one that fails."""

import asyncio

import pytest

from naiad_http.cycles import AsgiCycle, Flow
from naiad_http.heads import HttpHead
from naiad_http.incoming import Message


class Transport:
    """Records what is written, in how many writes, and whether the connection was closed."""

    def __init__(self):
        self.content = b""
        self.writes = 0
        self.closed = False

    def writelines(self, buffers):
        self.content += b"".join(buffers)
        self.writes += 1

    def close(self):
        self.closed = True

    def pause_reading(self):
        self.reading_paused = True

    def resume_reading(self):
        self.reading_paused = False

    def get_extra_info(self, name):
        return {"sockname": ("::1", 8000, 0, 0), "peername": ("::1", 5, 0, 0)}.get(name)


def head_of(method="GET", keep_alive=True, version="1.1"):
    return HttpHead(method, b"/p%20q", b"a=b", version, (), 4, False, keep_alive, False, None, None, False, None)


def run(application, method="GET", keep_alive=True, version="1.1"):
    """Run the application for one request with the body `body`; the transport, and how many responses were written."""
    head = head_of(method, keep_alive, version)
    transport, responses = Transport(), []

    async def main():
        flow, date = Flow(transport), [(b"date", b"today")]
        flow.pause_reading()  # further requests wait
        message = Message(head, b"bo", b"dy")
        cycle = AsgiCycle(message, transport, flow, date, lambda: keep_alive, lambda: responses.append(1))
        await cycle.run_asgi(application)

    asyncio.run(main())
    return transport, len(responses)


def answer(*bodies, headers=(), status=200):
    async def application(scope, receive, send):
        await send({"type": "http.response.start", "status": status, "headers": list(headers)})
        for index, body in enumerate(bodies):
            await send({"type": "http.response.body", "body": body, "more_body": index < len(bodies) - 1})

    return application


def test_an_application_sees_the_request():
    seen = []

    async def application(scope, receive, send):
        seen.append((scope["path"], scope["raw_path"], scope["query_string"], scope["server"], scope["client"]))
        seen.append(await receive())
        await answer(b"")(scope, receive, send)
        seen.append(await receive())

    run(application)

    assert seen == [
        ("/p q", b"/p%20q", b"a=b", ("::1", 8000), ("::1", 5)),
        {"type": "http.request", "body": b"body", "more_body": False},
        {"type": "http.disconnect"},
    ]


def test_an_application_that_receives_does_not_read_on():
    async def application(scope, receive, send):
        await receive()
        await answer(b"")(scope, receive, send)

    transport, _ = run(application)

    assert transport.reading_paused


@pytest.mark.parametrize(
    ("application", "content"),
    [
        (
            answer(b"ab", b"c", headers=[(b"Content-Length", b"3")]),
            b"HTTP/1.1 200 OK\r\ndate: today\r\ncontent-length: 3\r\n\r\nabc",
        ),
        (
            answer(b"ab", b"", b"c"),
            b"HTTP/1.1 200 OK\r\ndate: today\r\ntransfer-encoding: chunked\r\n\r\n2\r\nab\r\n1\r\nc\r\n0\r\n\r\n",
        ),
        (answer(b"", status=204), b"HTTP/1.1 204 No Content\r\ndate: today\r\n\r\n"),
    ],
)
def test_a_response_is_written_as_http(application, content):
    transport, responses = run(application)

    assert (transport.content, transport.closed, responses) == (content, False, 1)


def test_a_body_of_unknown_length_ends_with_the_connection_of_http_1_0():
    transport, responses = run(answer(b"ab", b"", b"c"), version="1.0")

    assert transport.content == b"HTTP/1.1 200 OK\r\ndate: today\r\nconnection: close\r\n\r\nabc"
    assert (transport.closed, responses) == (True, 1)


def test_a_response_to_head_has_no_body():
    transport, responses = run(answer(b"abc", headers=[(b"content-length", b"3")]), method="HEAD")

    assert transport.content.endswith(b"content-length: 3\r\n\r\n")
    assert responses == 1


@pytest.mark.parametrize(("keep_alive", "headers"), [(False, []), (True, [(b"connection", b"x, Close")])])
def test_a_connection_that_is_not_kept_is_closed_after_the_response(keep_alive, headers):
    transport, responses = run(answer(b"", headers=headers), keep_alive=keep_alive)

    assert transport.content.lower().count(b"connection:") == 1
    assert (transport.closed, responses) == (True, 1)


@pytest.mark.parametrize(
    "application",
    [
        answer(b"x", headers=[(b"a", b"b\r\nset-cookie: c")]),
        answer(b"x", headers=[(b"a b", b"c")]),
        lambda *_: asyncio.sleep(0),
        answer(b"ab", headers=[(b"content-length", b"3")]),
        answer(b"abcd", headers=[(b"content-length", b"3")]),
        answer(headers=[(b"content-length", b"3")]),
    ],
    ids=["value", "name", "no response", "short", "long", "no body"],
)
def test_an_application_that_fails_before_the_body_of_its_response_is_answered_with_500(application):
    transport, responses = run(application)

    assert transport.content.startswith(b"HTTP/1.1 500 Internal Server Error\r\n")
    assert b"set-cookie" not in transport.content
    assert (transport.closed, responses) == (True, 1)


@pytest.mark.parametrize("last", [b"b", b"bcd"])
def test_a_body_of_another_length_than_announced_closes_the_connection(last):
    transport, responses = run(answer(b"a", last, headers=[(b"content-length", b"3")]))

    assert transport.content.endswith(b"\r\n\r\na")
    assert (transport.closed, responses) == (True, 0)


def test_the_head_is_written_with_the_begin_of_the_body():
    transport, _ = run(answer(b"abc", headers=[(b"content-length", b"3")]))

    assert transport.writes == 1


def test_an_application_that_is_cancelled_for_a_client_who_is_gone_is_no_failure(caplog):
    async def main():
        cycle = AsgiCycle(Message(head_of(), b"", b""), Transport(), Flow(Transport()), [], lambda: True, lambda: None)
        task = asyncio.create_task(cycle.run_asgi(lambda *_: asyncio.Event().wait()))
        await asyncio.sleep(0)
        cycle.disconnect()
        task.cancel()
        await asyncio.wait([task])

    asyncio.run(main())

    assert caplog.text == ""


def test_a_server_that_begins_to_drain_before_the_head_is_written_says_that_the_connection_closes():
    transport, draining = Transport(), []

    async def application(scope, receive, send):
        draining.append(True)
        await answer(b"abc", headers=[(b"content-length", b"3")])(scope, receive, send)

    async def main():
        cycle = AsgiCycle(
            Message(head_of(), b"", b""), transport, Flow(transport), [], lambda: not draining, lambda: None
        )
        await cycle.run_asgi(application)

    asyncio.run(main())

    assert (b"connection: close\r\n" in transport.content, transport.closed) == (True, True)
