"""What is not a proper call of gRPC, on a socket: each gets the status that the protocol names, and harms no other."""

import pytest

from naiad_grpc.http2.frames import ErrorCode

from ..http2.conftest import END_HEADERS, PREFACE, SETTINGS, frame
from .conftest import GREETING, Calls, all_frames, begin, client_of, code_of_goaway, connected, listening, message

E = ErrorCode


@pytest.mark.parametrize(
    "request_text", [b"GET / HTTP/1.1\r\nHost: x\r\n\r\n", b"POST /v2 HTTP/1.1\r\n", b"P", b"PUT /a HTTP/1.0\r\n\r\n"]
)
def test_http_1_gets_an_answer_of_http_1_and_nothing_else(run, request_text):
    async def main():
        async with listening() as listener, connected(listener) as (reader, writer):
            writer.write(request_text)
            if request_text == b"P":
                writer.write(b"OST / HTTP/1.1\r\n\r\n")
            return await reader.read()

    answer = run(main())

    assert answer.startswith(b"HTTP/1.1 400 Bad Request\r\n")
    assert answer.endswith(b"\r\n\r\nThis port serves gRPC over HTTP/2 only.\n")


@pytest.mark.parametrize("sent", [b"\x16\x03\x01\x02\x00\x01", b"\0" * 40, PREFACE + b"\0" * 40])
def test_what_is_no_http_gets_a_goaway(run, sent):
    async def main():
        async with listening() as listener, connected(listener) as (reader, writer):
            writer.write(sent)
            return await all_frames(reader)

    assert code_of_goaway(run(main()))[0] == E.PROTOCOL_ERROR


def test_a_header_list_above_every_limit_ends_the_connection(run):
    async def main():
        async with listening() as listener, connected(listener) as (reader, writer):
            writer.write(GREETING + begin(1, "/t/echo", 0) + b"".join(frame(9, 0, 1, bytes(16384)) for _ in range(3)))
            return await all_frames(reader)

    assert code_of_goaway(run(main()))[0] == E.ENHANCE_YOUR_CALM


def test_metadata_above_the_announced_size_fail_the_call_alone(run):
    async def main():
        async with listening() as listener, client_of(listener) as client:
            refused = client.begin("/t/echo", message(b"x"), (b"x-large", b"x" * 17_000))
            stream = client.begin("/t/echo", message(b"next"))
            await client.status(stream)
            return await client.status(refused), client.content[stream]

    status, following = run(main())

    assert status[0] == b"8"
    assert following == message(b"next")


@pytest.mark.parametrize(
    ("content", "status", "reason"),
    [
        (b"", b"12", b"no complete message"),
        (message(b"a") + message(b"b"), b"12", b"more than one message"),
        (message(b"abc")[:3], b"13", b"ends within a message"),
        (message(b"abc")[:-1], b"13", b"ends within a message"),
        (message(b"abc") + b"\0\0", b"13", b"ends within a message"),
        (b"\x02" + message(b"abc")[1:], b"13", b"starts with 2"),
        (message(b"abc", 1), b"13", b"no grpc-encoding"),
    ],
)
@pytest.mark.parametrize("path", ["/t/echo", "/t/stream"])
def test_messages_that_break_the_rules_have_their_status(run, path, content, status, reason):
    async def main():
        async with listening() as listener, client_of(listener) as client:
            stream = client.begin(path, content or None)
            return await client.status(stream), await client.status(client.begin("/t/echo", message(b"next")))

    (code, text), (following, _) = run(main())

    if path == "/t/stream" and status == b"12":  # a stream may have any number of messages
        assert code == b"0"
    else:
        assert (code, reason in text) == (status, True)
    assert following == b"0"


@pytest.mark.parametrize(("encoding", "status"), [(b"gzip", b"13"), (b"deflate", b"13"), (b"br", b"12")])
def test_content_that_is_not_as_its_encoding_says(run, encoding, status):
    async def main():
        async with listening() as listener, client_of(listener) as client:
            stream = client.begin("/t/echo", message(b"not compressed", 1), (b"grpc-encoding", encoding))
            return await client.status(stream), client.head[stream].get(b"grpc-accept-encoding")

    (code, _), accepted = run(main())

    assert code == status
    assert accepted == (b"identity,gzip,deflate" if encoding == b"br" else None)


@pytest.mark.parametrize(("further", "status"), [((b"content-type", b"text/plain"), b"415")])
def test_another_content_type_is_415(run, further, status):
    async def main():
        async with listening() as listener, client_of(listener) as client:
            stream = client.h2.get_next_available_stream_id()
            fields = [(b":method", b"POST"), (b":scheme", b"http"), (b":path", b"/t/echo"), (b":authority", b"x")]
            client.h2.send_headers(stream, [*fields, further], end_stream=True)
            client.flush()
            await client.until(lambda: stream in client.head)
            return client.head[stream][b":status"]

    assert run(main()) == status


@pytest.mark.parametrize(("path", "noted"), [("/t/wait", "cancelled"), ("/t/stream", "closed")])
def test_a_deadline_is_kept_by_the_server_and_ends_the_work(run, path, noted):
    calls = Calls()

    async def main():
        async with listening(calls) as listener, client_of(listener) as client:
            stream = client.begin(path, message(b"x"), (b"grpc-timeout", b"500m"), end=path == "/t/wait")
            status = await client.status(stream)
            await calls.ended.wait()
            return status, await client.status(client.begin("/t/echo", message(b"next"))), listener.calls_in_flight

    assert run(main()) == ((b"4", b"Deadline Exceeded"), (b"0", b""), 0)
    assert calls.noted == [noted]


def test_an_answer_before_the_end_of_the_request_resets_it_without_an_error(run):
    async def main():
        async with listening() as listener, client_of(listener) as client:
            stream = client.begin("/t/dream", message(b"x"), end=False)
            await client.until(lambda: stream in client.resets)
            return client.trailers[stream][b"grpc-status"], client.resets[stream]

    assert run(main()) == (b"12", E.NO_ERROR)


def test_a_client_that_closes_its_half_of_the_call_gets_its_answer(run):
    calls = Calls()

    async def main():
        async with listening(calls) as listener, client_of(listener) as client:
            stream = client.begin("/t/late", message(b"x"))
            await calls.entered.wait()
            calls.opened.set()
            return await client.status(stream), client.content[stream]

    assert run(main()) == ((b"0", b""), message(b"x"))


def test_a_client_that_pings_too_often_is_sent_away(run):
    async def main():
        async with listening() as listener, connected(listener) as (reader, writer):
            writer.write(GREETING + b"".join(frame(6, 0, 0, bytes(8)) for _ in range(4)))
            return await all_frames(reader)

    assert code_of_goaway(run(main())) == (E.ENHANCE_YOUR_CALM, b"too_many_pings")


def test_settings_come_after_the_first_bytes_of_the_client(run):
    async def main():
        async with listening() as listener, connected(listener) as (reader, writer):
            writer.write(PREFACE[:10])
            writer.write(PREFACE[10:] + frame(SETTINGS, 0, 0))
            head = await reader.readexactly(9)
            return head[3]

    assert run(main()) == SETTINGS


def test_a_bidirectional_stream_interleaves(run):
    async def main():
        async with listening() as listener, client_of(listener) as client:
            stream = client.begin("/t/stream", message(b"a"), end=False)
            await client.until(lambda: client.content.get(stream) == message(b"a"))
            client.h2.send_data(stream, message(b"b"), end_stream=True)
            client.flush()
            return await client.status(stream), client.content[stream]

    assert run(main()) == ((b"0", b""), message(b"a") + message(b"b") + message(b"2"))


def test_a_stream_that_begins_with_nothing_is_open(run):
    async def main():
        async with listening() as listener, connected(listener) as (reader, writer):
            writer.write(GREETING + begin(1, "/t/stream", END_HEADERS))
            writer.write(frame(0, 1, 1))
            return await reader.readuntil(b"grpc-status\x010")

    assert b"grpc-status\x010" in run(main())
