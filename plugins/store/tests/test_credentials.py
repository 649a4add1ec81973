"""The credentials that a store sees in its requests."""

import json
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import pytest

from naiad.errors import InvalidArgumentError
from naiad_store.buckets import BucketObjects
from naiad_store.urls import CREDENTIALS, StoreUrl

_NO_OBJECTS = b"<ListBucketResult><Name>b</Name><IsTruncated>false</IsTruncated></ListBucketResult>"


@pytest.fixture
def store(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[tuple[StoreUrl, list[tuple[str, str]]]]:
    """The URL of an S3 store without objects, and the access key and session token of each request to it."""
    requests: list[tuple[str, str]] = []

    class Handler(BaseHTTPRequestHandler):
        def log_message(self, *words: object) -> None:
            """Say nothing."""

        def do_GET(self) -> None:
            _, _, key = self.headers["Authorization"].partition("Credential=")
            requests.append((key.partition("/")[0], self.headers.get("X-Amz-Security-Token", "")))
            self.send_response(200)
            self.send_header("Content-Length", str(len(_NO_OBJECTS)))
            self.end_headers()
            self.wfile.write(_NO_OBJECTS)

    for variable, file in (("AWS_SHARED_CREDENTIALS_FILE", "credentials"), ("AWS_CONFIG_FILE", "config")):
        monkeypatch.setenv(variable, str(tmp_path / file))
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = Thread(target=server.serve_forever)
    thread.start()
    yield StoreUrl.parse(f"s3://127.0.0.1:{server.server_port}/b"), requests
    server.shutdown()
    server.server_close()
    thread.join()


def write_entry(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, **entry: str) -> None:
    """A credential file with this entry for all of S3."""
    (tmp_path / "credentials.json").write_text(json.dumps({"s3": {"": entry}}))
    monkeypatch.setenv(CREDENTIALS, str(tmp_path / "credentials.json"))


def test_keys_of_a_credential_file_come_without_the_token_of_the_environment(
    store: tuple[StoreUrl, list[tuple[str, str]]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    url, requests = store
    monkeypatch.setenv("AWS_SESSION_TOKEN", "of the environment")

    write_entry(tmp_path, monkeypatch, key_id="own", secret_key="s")
    list(BucketObjects.open(url).objects(""))
    write_entry(tmp_path, monkeypatch, key_id="own", secret_key="s", session_token="mine")
    list(BucketObjects.open(url).objects(""))

    assert requests == [("own", ""), ("own", "mine")]


def test_keys_of_a_profile_come_without_the_token_of_the_environment(
    store: tuple[StoreUrl, list[tuple[str, str]]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    url, requests = store
    (tmp_path / "credentials").write_text("[work]\naws_access_key_id = work\naws_secret_access_key = s\n")
    monkeypatch.delenv("AWS_ACCESS_KEY_ID", raising=False)
    monkeypatch.setenv("AWS_PROFILE", "work")
    monkeypatch.setenv("AWS_SESSION_TOKEN", "of the environment")

    list(BucketObjects.open(url).objects(""))

    assert requests == [("work", "")]


def test_the_log_names_the_key_of_the_environment_where_an_entry_of_the_file_has_none(
    store: tuple[StoreUrl, list[tuple[str, str]]],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    url, requests = store
    caplog.set_level("INFO", "naiad")
    write_entry(tmp_path, monkeypatch, region="eu-west-1")
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "environment")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "s")

    list(BucketObjects.open(url).objects(""))

    assert [key for key, _ in requests] == ["environment"]
    assert "is read as access key 'environment', region eu-west-1" in caplog.text


def test_a_key_without_its_secret_is_refused(
    store: tuple[StoreUrl, list[tuple[str, str]]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_entry(tmp_path, monkeypatch, key_id="own")

    with pytest.raises(InvalidArgumentError, match="lack the key or its secret"):
        BucketObjects.open(store[0])
