"""A server that speaks the protocol of S3, and tests that are coroutines."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import obstore
import pytest
import requests
from moto.server import ThreadedMotoServer
from obstore.store import S3Store

from naiad_testing.loops import coroutine_tests

pytest_pyfunc_call = coroutine_tests()


@dataclass
class Bucket:
    """A bucket of moto's S3: `url` is what a server takes, `endpoint` is the address of the store."""

    server: ThreadedMotoServer
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


@pytest.fixture
def bucket(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Bucket]:
    """An empty bucket, with credentials for it in the environment and a cache of its own."""
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "key")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "secret")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    server = ThreadedMotoServer("127.0.0.1", port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    endpoint = f"http://{host}:{port}"
    requests.post(f"{endpoint}/moto-api/reset", timeout=10)
    requests.put(f"{endpoint}/bucket", timeout=10)
    store = S3Store("bucket", endpoint=endpoint, region="us-east-1", client_options={"allow_http": True})
    yield Bucket(server, endpoint, store)
    server.stop()
