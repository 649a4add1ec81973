"""HTTP over TLS: who is let in, and that everything works that works in the clear; on either event loop."""

import asyncio
import json
import ssl
from contextlib import asynccontextmanager
from types import SimpleNamespace

import pytest

import naiad_http
from naiad import Server
from naiad.errors import InvalidArgumentError
from naiad_http.tls import server_context
from naiad_kit.frontends import renewal
from naiad_testing.frontends import SuiteBackend
from naiad_testing.frontends.certificates import Authority

from .certificates import client_context, encrypt

REQUEST = b"GET /v2/models/repeat HTTP/1.1\r\nHost: h\r\n\r\n"
OFF = {
    "http-use-ssl": False,
    "http-use-ssl-mutual": False,
    "http-server-cert": "",
    "http-server-key": "",
    "http-root-cert": "",
}


@pytest.fixture(scope="session")
def certificates(tmp_path_factory):
    """Our root and certificates for a server and a client, and a stranger's: pairs of a certificate and its key."""
    folder = tmp_path_factory.mktemp("certificates")
    ours, theirs = Authority(folder), Authority(folder / "theirs")
    (folder / "server.csr").write_text("this is no certificate")
    return SimpleNamespace(
        folder=folder,
        root=ours.root,
        server=ours.issue("server"),
        client=ours.issue("client"),
        stranger=theirs.issue("stranger"),
    )


@pytest.fixture
def options(certificates):
    return {
        "http-use-ssl": True,
        "http-server-cert": str(certificates.server[0]),
        "http-server-key": str(certificates.server[1]),
    }


@pytest.fixture
def backend():
    return SuiteBackend()


@pytest.fixture
def make_server(tmp_path, backend, options):
    """A server over TLS that a test starts itself."""
    repository = tmp_path / "models"
    backend.write_models(repository)
    plain = {"http-port": 0, "http-address": "127.0.0.1", "exit-timeout-secs": 20.0}

    def make(**more):
        return Server(model_repository=[repository], plugins=[backend, naiad_http], options=plain | options | more)

    return make


@asynccontextmanager
async def connected(server, context, **options):
    port = server.plugins.frontends()["http"].port
    reader, writer = await asyncio.open_connection("localhost", port, ssl=context, **options)
    try:
        yield reader, writer
    finally:
        writer.close()


async def ask(server, context):
    """The document that describes the model; b"" or ssl.SSLError or OSError for who is not let in."""
    async with connected(server, context) as (reader, writer):
        writer.write(REQUEST)
        head = await reader.readuntil(b"\r\n\r\n")
        length = int(head.lower().partition(b"\r\ncontent-length: ")[2].partition(b"\r\n")[0])
        return json.loads(await reader.readexactly(length))


def stream(version="HTTP/1.1", **members):
    body = json.dumps(members).encode()
    head = f"POST /v2/models/repeat/generate_stream {version}\r\nHost: h\r\nContent-Length: {len(body)}\r\n\r\n"
    return head.encode() + body


def test_a_slow_reader_lets_its_model_wait_and_gets_everything(run, make_server, certificates, backend):
    async def main():
        async with (
            make_server() as server,
            connected(server, client_context(certificates.root), limit=2048) as (reader, writer),
        ):
            writer.write(stream("HTTP/1.0", COUNT=3000, SIZE=10_000))
            assert await asyncio.to_thread(backend.stuck.wait, 30)
            sent = backend.sent
            return sent, await reader.read()

    sent, answer = run(main())

    assert sent * 10_000 < 20_000_000
    assert answer.count(b"data: {") == 3000
    assert json.loads(answer.split(b"\n\n")[-2].removeprefix(b"data: "))["INDEX"] == 2999


def test_a_client_that_leaves_takes_its_request_back(run, make_server, certificates, backend):
    async def main():
        async with make_server() as server:
            async with connected(server, client_context(certificates.root)) as (reader, writer):
                writer.write(stream(COUNT=2**30))
                await reader.readuntil(b"data: ")
            return await asyncio.to_thread(backend.cancelled.wait, 30)

    assert run(main())


def test_idle_connections_do_not_hold_up_the_end(run, make_server, certificates):
    async def main():
        server = make_server()
        await server.start()
        async with connected(server, client_context(certificates.root)) as (_reader, writer):
            writer.transport.pause_reading()  # so that it does not even see the goodbye
            started = asyncio.get_running_loop().time()
            await server.stop()
            took = asyncio.get_running_loop().time() - started
            writer.transport.abort()
            await asyncio.sleep(0)
            return took

    assert run(main()) < 5


def test_without_its_options_there_is_no_tls():
    assert server_context(OFF) is None


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"http-use-ssl": True}, "HTTP over TLS needs --http-server-cert"),
        ({"http-use-ssl": True, "http-server-cert": "server.pem"}, "HTTP over TLS needs --http-server-key"),
        (
            {"http-use-ssl-mutual": True, "http-server-cert": "server.pem", "http-server-key": "server.key"},
            "HTTP over TLS needs --http-root-cert",
        ),
        (
            {"http-use-ssl": True, "http-server-cert": "none.pem", "http-server-key": "server.key"},
            "--http-server-cert: '{folder}/none.pem'",
        ),
        (
            {"http-use-ssl": True, "http-server-cert": "server.pem", "http-server-key": "client.key"},
            "--http-server-cert '{folder}/server.pem' and --http-server-key '{folder}/client.key' are not a",
        ),
        (
            {"http-use-ssl": True, "http-server-cert": "server.csr", "http-server-key": "server.key"},
            "--http-server-cert '{folder}/server.csr'",
        ),
        (
            {"http-use-ssl": True, "http-server-cert": "server.pem", "http-server-key": "locked.key"},
            "without a password",
        ),
        (
            {
                "http-use-ssl-mutual": True,
                "http-server-cert": "server.pem",
                "http-server-key": "server.key",
                "http-root-cert": "server.key",
            },
            "--http-root-cert: '{folder}/server.key' holds no certificates",
        ),
        ({"http-server-cert": "server.pem"}, "--http-server-cert is given"),
        ({"http-root-cert": "root.pem"}, "add --http-use-ssl"),
    ],
)
def test_errors_of_invalid_options_name_the_option_and_the_file(certificates, options, message):
    folder = certificates.folder
    encrypt(certificates.server[1], folder / "locked.key")
    chosen = {name: value if isinstance(value, bool) else str(folder / value) for name, value in options.items()}

    with pytest.raises(InvalidArgumentError) as caught:
        server_context(OFF | chosen)

    assert message.format(folder=folder) in str(caught.value)


def test_a_renewed_certificate_is_used_for_new_connections(run, make_server, certificates, tmp_path, monkeypatch):
    monkeypatch.setattr(renewal, "LOOK_SECONDS", 0.01)
    theirs = Authority(tmp_path)
    renewed = theirs.issue("server")
    cert, key = tmp_path / "cert", tmp_path / "key"
    cert.write_bytes(certificates.server[0].read_bytes())
    key.write_bytes(certificates.server[1].read_bytes())

    async def main():
        async with make_server(**{"http-server-cert": str(cert), "http-server-key": str(key)}) as server:
            first = await ask(server, client_context(certificates.root))
            key.write_bytes(renewed[1].read_bytes())
            cert.write_bytes(renewed[0].read_bytes())
            while not (described := await _get(server, client_context(theirs.root))):
                pass
            return first, described, await _get(server, client_context(certificates.root))

    first, described, refused = run(main())

    assert (first["name"], described["name"], refused) == ("repeat", "repeat", None)


async def _get(server, context):
    """What `ask` gives, None for who does not trust the server's certificate."""
    try:
        return await ask(server, context)
    except ssl.SSLCertVerificationError:
        return None
