"""HTTP on a unix socket: its file, who may connect, and what is at its path; on either event loop."""

import asyncio
import os
import socket
import stat

import pytest

import naiad_http
from naiad import Server
from naiad.errors import InvalidArgumentError, UnavailableError


@pytest.fixture
def path(tmp_path):
    return tmp_path / "naiad.sock"


@pytest.fixture
def make_server(path, mirror, mirror_models):
    """A server on that path that a test starts itself."""

    def make(address=""):
        options = {"http-address": address or f"unix:{path}"}
        return Server(model_repository=[mirror_models], plugins=[mirror, naiad_http], options=options)

    return make


async def ask(path):
    """The first line of the answer to a health check."""
    reader, writer = await asyncio.open_unix_connection(path)
    writer.write(b"GET /v2/health/ready HTTP/1.1\r\nHost: h\r\n\r\n")
    line = await reader.readline()
    writer.close()
    return line


def test_it_listens_there_and_leaves_nothing_behind(run, make_server, path):
    async def main():
        async with make_server() as server:
            frontend = server.plugins.frontends()["http"]
            return await ask(path), frontend.address, frontend.port

    line, address, port = run(main())

    assert line == b"HTTP/1.1 200 OK\r\n"
    assert (address, port) == (f"unix:{path}", 0)
    assert not path.exists()


def test_the_umask_says_who_may_connect(run, make_server, path):
    async def main():
        before = os.umask(0o077)
        try:
            async with make_server():
                return stat.S_IMODE(path.stat().st_mode)
        finally:
            os.umask(before)

    assert run(main()) == 0o700


def test_what_a_crashed_server_left_behind_is_replaced(run, make_server, path):
    with socket.socket(socket.AF_UNIX) as crashed:
        crashed.bind(str(path))

    async def main():
        async with make_server():
            return await ask(path)

    assert run(main()) == b"HTTP/1.1 200 OK\r\n"


def test_the_path_of_another_server_is_not_taken(run, make_server, path):
    async def main():
        async with make_server():
            with pytest.raises(UnavailableError) as caught:
                await make_server().start()
            return str(caught.value), await ask(path)

    message, line = run(main())

    assert f"HTTP cannot listen on unix:{path}: " in message
    assert "--http-address" in message
    assert line == b"HTTP/1.1 200 OK\r\n"


def test_a_file_that_is_no_socket_stays_what_it_is(run, make_server, path):
    path.write_text("precious")

    with pytest.raises(UnavailableError, match="not a socket"):
        run(make_server().start())

    assert path.read_text() == "precious"


def test_a_file_that_has_come_into_its_path_is_left_there(run, make_server, path):
    async def main():
        async with make_server():
            path.unlink()
            path.write_text("another's")

    run(main())

    assert path.read_text() == "another's"


@pytest.mark.parametrize(
    ("address", "kind", "message"),
    [
        ("unix:", InvalidArgumentError, "unix:"),
        ("unix:/no/such/folder/naiad.sock", UnavailableError, "No such file or directory"),
        ("unix:/" + "x" * 300, UnavailableError, "too long"),
    ],
)
def test_an_invalid_path_is_refused(run, make_server, address, kind, message):
    with pytest.raises(kind, match=message):
        run(make_server(address).start())
