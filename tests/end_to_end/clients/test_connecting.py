"""Connection options of every client: other ways to TLS than files, and limits of its own."""

import inspect
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import grpc
import numpy as np
import pytest
import tritonclient.grpc
import tritonclient.grpc.aio

from naiad_testing.frontends.certificates import Authority

from .. import models
from ..conftest import ending_well
from ..running import PATIENCE, Running, until
from ..serving import making_clients
from .driving import MODULES, Driven

X = np.array([1.5, -2], np.float32)
GRPC_FILES = {"root_certificates", "private_key", "certificate_chain"}
OVER_TLS = {
    "http": {"ssl", "ssl_options", "ssl_context_factory"},
    "http.aio": {"ssl", "ssl_context"},
    "grpc": {"ssl", *GRPC_FILES},
    "grpc.aio": {"ssl", *GRPC_FILES},
}
"""Options for TLS, with which the table of all frontends connects."""


class OverTls(Running):
    """A server whose HTTP is over TLS."""

    @property
    def port(self) -> int:
        """Where it listens, as soon as it does."""
        return int(until(lambda: self.log.partition("listens at https://127.0.0.1:")[2]).split('"')[0])


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with `root.pem`, `server.pem` and `client.pem`, and the keys of the last two."""
    authority = Authority(tmp_path_factory.mktemp("certificates"))
    for name in ("server", "client"):
        authority.issue(name)
    return authority.root.parent


@pytest.fixture(scope="module")
def guarded(certificates: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    """A server that refuses clients without a certificate, on either protocol."""
    folder = tmp_path_factory.mktemp("guarded")
    models.write(folder / "models", "echo", models.ECHO)
    files = {"server-cert": "server.pem", "server-key": "server.key", "root-cert": "root.pem"}
    words = [f"--{side}-{name}={certificates / file}" for side in ("http", "grpc") for name, file in files.items()]
    with ending_well(
        OverTls(folder / "models", folder / "log", *words, "--http-use-ssl-mutual", "--grpc-use-ssl-mutual")
    ) as running:
        yield running


@pytest.fixture
def connect(guarded: Running) -> Iterator[Callable[..., Driven]]:
    """Make clients of that server."""
    with making_clients(guarded) as make:
        yield make


def echoed(client: Driven) -> list[float]:
    result: list[float] = client.infer("echo", [client.tensor("x", X)]).as_numpy("output").tolist()
    return result


def test_an_http_client_may_skip_the_check_of_certificates(connect: Callable[..., Driven], certificates: Path) -> None:
    shown = {"certfile": str(certificates / "client.pem"), "keyfile": str(certificates / "client.key")}

    client = connect("http", ssl=True, insecure=True, ssl_options={**shown, "ca_certs": str(certificates / "root.pem")})

    assert echoed(client) == X.tolist()


@pytest.mark.parametrize("kind", ["grpc", "grpc.aio"])
def test_a_grpc_client_may_be_given_its_credentials(
    connect: Callable[..., Driven], certificates: Path, kind: str
) -> None:
    parts = [(certificates / name).read_bytes() for name in ("root.pem", "client.key", "client.pem")]

    client = connect(kind, creds=grpc.ssl_channel_credentials(*parts))

    assert echoed(client) == X.tolist()


_ARGUMENTS = {"channel_args": [("grpc.max_receive_message_length", 1 << 20)]}
OWN: list[tuple[str, dict[str, Any]]] = [
    ("http", {"verbose": True, "concurrency": 2, "max_greenlets": 2}),
    ("http", {"connection_timeout": PATIENCE, "network_timeout": PATIENCE}),
    ("http.aio", {"verbose": True, "conn_limit": 1, "conn_timeout": PATIENCE}),
    ("grpc", {"verbose": True, **_ARGUMENTS}),
    ("grpc", {"keepalive_options": tritonclient.grpc.KeepAliveOptions(keepalive_time_ms=60_000)}),
    ("grpc.aio", {"verbose": True, **_ARGUMENTS}),
    ("grpc.aio", {"keepalive_options": tritonclient.grpc.aio.KeepAliveOptions(keepalive_time_ms=60_000)}),
]
"""Options of each kind of client that have nothing to do with TLS."""


@pytest.mark.parametrize(
    ("kind", "options"), OWN, ids=lambda value: value if isinstance(value, str) else "+".join(value)
)
def test_a_client_may_be_reported_how_to_connect(
    make_client: Callable[..., Driven], kind: str, options: dict[str, Any]
) -> None:
    assert echoed(make_client(kind, **options)) == X.tolist()


@pytest.mark.parametrize("kind", MODULES)
def test_no_way_to_connect_is_missing(kind: str) -> None:
    fields = {"self", "url", "insecure" if kind == "http" else "self", "creds" if kind.startswith("grpc") else "self"}
    fields |= OVER_TLS[kind].union(*(options for of_kind, options in OWN if of_kind == kind))

    assert set(inspect.signature(MODULES[kind].InferenceServerClient.__init__).parameters) == fields
