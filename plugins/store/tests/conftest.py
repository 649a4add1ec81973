"""Servers that speak the protocols of S3 and of the Hugging Face Hub, and tests that are coroutines."""

import hashlib
import json
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import unquote

import obstore
import pytest
import requests
from obstore.store import S3Store

from naiad_testing.loops import coroutine_tests

if TYPE_CHECKING:
    from moto.server import ThreadedMotoServer

pytest_pyfunc_call = coroutine_tests()


@dataclass
class Bucket:
    """A bucket of moto's S3: `url` is what a server takes, `endpoint` is the address of the store."""

    server: "ThreadedMotoServer"
    endpoint: str
    store: S3Store

    @property
    def url(self) -> str:
        return f"s3://{self.endpoint.removeprefix('http://')}/bucket/models"

    def put(self, path: str, content: bytes) -> None:
        obstore.put(self.store, f"models/{path}", content, use_multipart=False)

    def check_credentials(self, check: bool) -> None:
        """Whether the store refuses credentials that it does not know."""
        requests.post(f"{self.endpoint}/moto-api/reset-auth", data=b"0" if check else b"inf", timeout=10)

    def put_model(self, name: str, weights: bytes = b"weights") -> None:
        """A model of the fake backend with 1/weights."""
        self.put(f"{name}/config.pbtxt", b'backend: "fake"')
        self.put(f"{name}/1/weights", weights)


def start_store(port: int = 0) -> "ThreadedMotoServer":
    """Start a store at this port of 127.0.0.1, or at a free one."""
    from moto.server import ThreadedMotoServer  # takes most of a second, and all tests are collected

    server = ThreadedMotoServer("127.0.0.1", port=port, verbose=False)
    server.start()
    return server


@pytest.fixture
def bucket(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Bucket]:
    """An empty bucket, with credentials for it in the environment and a cache of its own."""
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "key")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "secret")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    server = start_store()
    host, port = server.get_host_and_port()
    endpoint = f"http://{host}:{port}"
    requests.post(f"{endpoint}/moto-api/reset", timeout=10)
    requests.put(f"{endpoint}/bucket", timeout=10)
    store = S3Store("bucket", endpoint=endpoint, region="us-east-1", client_options={"allow_http": True})
    yield Bucket(server, endpoint, store)
    server.stop()


@dataclass
class Hub:
    """A server that answers huggingface_hub: `files` by revision and path, of the one repository `org/models`.

    It wants the token "secret". Files are sent by another server, to which it redirects as the real one does;
    `requests` are the paths of all requests with the headers that matter.
    """

    endpoint: str
    files: dict[str, dict[str, bytes]]
    requests: list[tuple[str, str, str]]

    def paths(self) -> list[str]:
        """The paths of the files that were sent, each as often as a part of it was."""
        return [path.split("/", 3)[3] for path, _, _ in self.requests if path.startswith("/files/")]


def _hub_handler(hub: Hub) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, *words: object) -> None:
            """Say nothing."""

        def do_GET(self) -> None:
            path = unquote(self.path.partition("?")[0])
            token, part = self.headers.get("Authorization", ""), self.headers.get("Range", "")
            hub.requests.append((path, token, part))
            _, kind, *rest = path.split("/", 4 if path.startswith("/api/") else 3)
            if kind == "files":
                revision, name = rest
                self._send_part(hub.files[revision][name], part)
            elif token != "Bearer secret":
                self._answer(401, b"{}", **{"X-Error-Code": "RepoNotFound"})
            elif kind == "api":
                self._describe(rest[-1].partition("/")[2].removeprefix("revision/") or "main")
            else:
                revision, name = rest[-1].removeprefix("resolve/").split("/", 1)
                self._answer(302, b"", Location=f"http://localhost:{self.server.server_port}/files/{revision}/{name}")  # type: ignore[attr-defined]

        def _describe(self, revision: str) -> None:
            if revision not in hub.files:
                self._answer(404, b"{}", **{"X-Error-Code": "RevisionNotFound"})
                return
            names = {name: hashlib.sha1(content).hexdigest() for name, content in hub.files[revision].items()}
            siblings = [
                {"rfilename": name, "size": len(hub.files[revision][name]), "blobId": names[name]} for name in names
            ]
            self._answer(200, json.dumps({"id": "org/models", "sha": revision, "siblings": siblings}).encode())

        def _send_part(self, content: bytes, part: str) -> None:
            first, last = map(int, part.removeprefix("bytes=").split("-"))
            self._answer(206, content[first : last + 1])

        def _answer(self, status: int, body: bytes, **headers: str) -> None:
            self.send_response(status)
            for name, value in {**headers, "Content-Length": str(len(body))}.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(body)

    return Handler


@pytest.fixture
def hub(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Hub]:
    """A hub with an empty repository, its address and token in the environment, and a cache of its own."""
    hub = Hub("", {"main": {}}, [])
    server = ThreadingHTTPServer(("127.0.0.1", 0), _hub_handler(hub))
    hub.endpoint = f"http://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    monkeypatch.setenv("HF_ENDPOINT", hub.endpoint)
    monkeypatch.setenv("HF_TOKEN", "secret")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    yield hub
    server.shutdown()
    server.server_close()
    thread.join()
