"""The frontend's life: where it listens, what it refuses to start with, and how it ends; on either event loop."""

import asyncio
import gzip
import json
import socket

import pytest
import uvicorn

import naiad_http
from naiad import Server
from naiad_http.assembly import asgi_application
from naiad_http.frontend import HttpFrontend
from naiad_http.options import OPTIONS

BODY = b'{"inputs":[{"name":"X","datatype":"INT32","shape":[1],"data":[1]}]}'
WAITING = BODY.replace(b'{"inputs"', b'{"parameters":{"wait":true},"inputs"')


def post(body, path=b"/v2/models/mirror_int32/infer", more=b""):
    return b"POST %b HTTP/1.1\r\nHost: h\r\n%bContent-Length: %d\r\n\r\n%b" % (path, more, len(body), body)


@pytest.fixture
def make_server(mirror, mirror_models):
    """A server over the mirror's models that a test starts itself."""

    def make(**options):
        chosen = {"http-port": 0, "http-address": "127.0.0.1", "exit-timeout-secs": 20.0, **options}
        return Server(model_repository=[mirror_models], plugins=[mirror, naiad_http], options=chosen)

    return make


def frontend_of(server):
    return server.plugins.frontends()["http"]


async def open_to(server):
    return await asyncio.open_connection("127.0.0.1", frontend_of(server).port)


async def answer_of(reader):
    head = await reader.readuntil(b"\r\n\r\n")
    length = int(head.lower().partition(b"\r\ncontent-length: ")[2].partition(b"\r\n")[0])
    return int(head.split()[1]), head, await reader.readexactly(length)


def test_it_says_where_it_listens(run, make_server):
    async def main():
        async with make_server() as server:
            frontend = frontend_of(server)
            reader, writer = await open_to(server)
            writer.write(post(BODY))
            status, head, _ = await answer_of(reader)
            writer.close()
            return frontend.address, frontend.port, status, head

    address, port, status, head = run(main())

    assert (address, status) == ("127.0.0.1", 200)
    assert port > 0
    assert b"\r\nDate: " in head


def test_idle_connections_do_not_hold_up_the_end(run, make_server):
    async def main():
        server = make_server()
        await server.start()
        reader, writer = await open_to(server)
        writer.write(post(BODY))
        await answer_of(reader)
        started = asyncio.get_running_loop().time()
        await server.stop()
        writer.close()
        return asyncio.get_running_loop().time() - started, await reader.read()

    took, rest = run(main())

    assert took < 20
    assert rest == b""


def test_what_is_in_flight_is_answered_before_the_end(run, make_server, mirror):
    async def main():
        server = make_server()
        await server.start()
        reader, writer = await open_to(server)
        writer.write(post(WAITING))
        await asyncio.to_thread(mirror.backend.gate.entered.wait, 20)
        stopping = asyncio.ensure_future(server.stop())
        await refused(frontend_of(server).port)
        mirror.backend.gate.opened.set()
        answered = await answer_of(reader)
        await stopping
        writer.close()
        return answered

    status, head, _ = run(main())

    assert status == 200
    assert b"\r\nConnection: close\r\n" in head


async def refused(port):
    """Return once no process listens on the port any more."""
    while True:
        try:
            _, writer = await asyncio.open_connection("127.0.0.1", port)
        except OSError:
            return
        writer.close()
        await asyncio.sleep(0)


@pytest.mark.parametrize(
    "request_bytes",
    [
        post(WAITING),
        post(WAITING + b" " * 100_000),
        post(gzip.compress(WAITING), more=b"Content-Encoding: gzip\r\n"),
        post(b'{"X":[1],"wait":true}' + b" " * 100_000, b"/v2/models/mirror_int32/generate"),
    ],
    ids=["infer", "large infer", "compressed infer", "large generate"],
)
def test_who_waits_for_what_takes_too_long_is_reported(run, make_server, mirror, request_bytes, caplog):
    async def main():
        server = make_server(**{"exit-timeout-secs": 0.2})
        await server.start()
        reader, writer = await open_to(server)
        writer.write(request_bytes)
        await asyncio.to_thread(mirror.backend.gate.entered.wait, 20)
        await frontend_of(server).stop(0.05)
        rest = await reader.read()
        mirror.backend.gate.opened.set()
        await server.stop()
        writer.close()
        return rest

    head, _, body = run(main()).partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 503 ")
    assert "the server stopped" in json.loads(body)["error"]
    assert "ASGI application" not in caplog.text


def test_health_checks_are_reported_that_the_server_is_about_to_end(run, make_server, mirror):
    async def main():
        server = make_server()
        await server.start()
        _reader, writer = await open_to(server)
        health = b"GET /v2/health/live HTTP/1.1\r\nHost: h\r\n\r\n"
        writer.write(post(WAITING) + health)
        await asyncio.to_thread(mirror.backend.gate.entered.wait, 20)
        other_reader, other_writer = await open_to(server)
        other_writer.write(health[:-2])
        await asyncio.sleep(0)
        stopping = asyncio.ensure_future(server.stop())
        await refused(frontend_of(server).port)
        other_writer.write(b"\r\n")
        mirror.backend.gate.opened.set()
        answered = await answer_of(other_reader)
        await stopping
        writer.close()
        other_writer.close()
        return answered

    status, _, body = run(main())

    assert (status, json.loads(body)) == (503, {"error": "Server exiting"})


def test_it_can_be_switched_off(run, make_server):
    async def main():
        async with make_server(**{"allow-http": False}) as server:
            return frontend_of(server).port

    assert run(main()) == 0


def test_an_end_without_a_start_is_no_error():
    assert asyncio.run(HttpFrontend().stop(1.0)) is None


@pytest.mark.parametrize(
    ("option", "text"), [("http-port", "70000"), ("http-port", "-1"), ("http-max-input-size", "0"), ("http-port", "x")]
)
def test_an_option_refuses_what_it_cannot_be(option, text):
    declared = next(each for each in OPTIONS if each.name == option)

    with pytest.raises(ValueError, match=text):
        declared.type(text)


def test_the_application_runs_under_an_asgi_server_of_the_users_choice(run, make_server):
    async def main():
        async with make_server(**{"allow-http": False}) as server:
            config = uvicorn.Config(asgi_application(server), log_config=None, log_level="error", ws="none")
            stock = uvicorn.Server(config)
            with socket.create_server(("127.0.0.1", 0)) as listening:
                serving = asyncio.ensure_future(stock.serve([listening]))
                reader, writer = await asyncio.open_connection(*listening.getsockname())
                writer.write(post(BODY) + b"GET /v2/models/mirror_int32 HTTP/1.1\r\nHost: h\r\n\r\n")
                answers = [await answer_of(reader), await answer_of(reader)]
                writer.close()
                stock.should_exit = True
                await serving
            return answers

    inferred, described = run(main())

    assert json.loads(inferred[2])["outputs"][0]["data"] == [1]
    assert json.loads(described[2])["name"] == "mirror_int32"


def test_many_clients_are_accepted_in_a_few_turns_of_the_loop(run, make_server):
    async def main():
        async with make_server() as server:
            frontend = frontend_of(server)
            connections = frontend._listener.server_state.connections
            clients = [socket.create_connection(("127.0.0.1", frontend.port)) for _ in range(64)]
            turns = 0
            while len(connections) < 64:
                await asyncio.sleep(0)
                turns += 1
            for each in clients:
                each.close()
            return turns

    assert run(main()) < 32
