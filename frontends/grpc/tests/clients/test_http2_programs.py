"""curl, nghttp and h2load, on nghttp2: another HTTP/2 than that of any gRPC library."""

import re

import pytest

from .conftest import Calls, listening, needed, run_program

FIELDS = ("content-type: application/grpc", "te: trailers")


def message(content):
    return b"\0" + len(content).to_bytes(4, "big") + content


@pytest.fixture
def body(tmp_path):
    """A file with a message."""
    path = tmp_path / "body"
    path.write_bytes(message(b"hello" * 10))
    return path


def as_options(name):
    return [word for field in FIELDS for word in (name, field)]


def curl(target, body, *more):
    command = [needed("curl", "curl"), "--silent", "--show-error", "--include", "--max-time", "30"]
    return run_program(*command, *as_options("--header"), "--data-binary", f"@{body}", *more, target)


def test_curl_gets_the_message_by_prior_knowledge(run, body):
    async def main():
        async with listening(Calls()) as listener:
            return await curl(f"http://{listener.target}/t/echo", body, "--http2-prior-knowledge")

    head, _, rest = run(main()).partition(b"\r\n\r\n")

    assert head.startswith(b"HTTP/2 200")
    assert b"content-type: application/grpc" in head
    assert rest.startswith(message(b"hello" * 10))
    assert b"grpc-status: 0" in rest


def test_curl_gets_the_message_over_tls(run, body, certificates):
    files = {"grpc-server-cert": certificates.file("cert"), "grpc-server-key": certificates.file("key")}

    async def main():
        async with listening(Calls(), **{"grpc-use-ssl": True, **files}) as listener:
            port = listener.target.rpartition(":")[2]
            options = ("--http2", "--cacert", certificates.file("root"), "--resolve", f"localhost:{port}:127.0.0.1")
            return await curl(f"https://localhost:{port}/t/echo", body, *options)

    answer = run(main())

    assert answer.startswith(b"HTTP/2 200")
    assert b"grpc-status: 0" in answer


def test_curl_learns_in_http_1_that_the_port_speaks_http_2(run, body):
    async def main():
        async with listening(Calls()) as listener:
            return await curl(f"http://{listener.target}/t/echo", body, "--http1.1")

    assert run(main()).startswith(b"HTTP/1.1 400 Bad Request")


@pytest.mark.parametrize("more", [(), ("--header-table-size=0",), ("--window-bits=1",), ("--padding=50",)])
def test_nghttp_gets_the_message(run, body, more):
    async def main():
        async with listening(Calls()) as listener:
            command = [needed("nghttp", "nghttp2-client"), "--verbose", "--no-dep", *as_options("--header")]
            return await run_program(*command, *more, f"--data={body}", f"http://{listener.target}/t/echo")

    answer = run(main())

    assert b":status: 200" in answer
    assert b"grpc-status: 0" in answer
    assert b"RST_STREAM" not in answer


@pytest.mark.parametrize(("clients", "streams"), [(1, 1), (10, 10), (4, 200)])
def test_h2load_has_every_request_answered(run, body, clients, streams):
    async def main():
        async with listening(Calls()) as listener:
            count = [
                f"--requests={clients * streams * 10}",
                f"--clients={clients}",
                f"--max-concurrent-streams={streams}",
            ]
            command = [needed("h2load", "nghttp2-client"), *count, *as_options("--header"), f"--data={body}"]
            return await run_program(*command, f"http://{listener.target}/t/echo"), listener.calls_in_flight

    answer, in_flight = run(main())

    total = clients * streams * 10
    counts = re.search(rb"requests: .*", answer)[0].decode()
    assert f"{total} done, {total} succeeded, 0 failed, 0 errored, 0 timeout" in counts
    assert in_flight == 0
