"""examples/recorded-warmup: models are warmed up with requests that were recorded from clients."""

import asyncio
import importlib
import json
import sys
import threading
import urllib.error
import urllib.request
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from naiad import Server
from naiad_testing.backends import FakeBackend

SOURCE = Path(__file__).resolve().parent.parent / "examples" / "recorded-warmup" / "src"
BODY = {"inputs": [{"name": "INPUT", "shape": [2], "datatype": "FP32", "data": [[1.5], [2.5]]}]}


def body_of(**value: Any) -> bytes:
    """A request with one element of FP32."""
    return json.dumps({"inputs": [{"name": "INPUT", "shape": [1], "datatype": "FP32", **value}]}).encode()


@pytest.fixture
def plugin(monkeypatch: pytest.MonkeyPatch) -> Iterator[ModuleType]:
    monkeypatch.syspath_prepend(str(SOURCE))
    yield importlib.import_module("naiad_recorded_warmup")
    for name in [each for each in sys.modules if each.startswith("naiad_recorded_warmup")]:
        del sys.modules[name]


def put(root: Path, name: str, content: bytes) -> None:
    folder = root / "m" / "warmup" / "requests"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / name).write_bytes(content)


def loaded(root: Path, plugin: ModuleType, config: str = "") -> tuple[str, list[Any]]:
    """Why the model m did not load ("" when it did), and the batches that it was warmed up with."""
    backend = FakeBackend()
    backend.write(root, "m", config)

    async def load() -> str:
        options = {"exit-on-error": False}
        async with Server(model_repository=[root], plugins=[backend, plugin], options=options) as server:
            return server.index()[0].reason

    return asyncio.run(load()), backend.batches


def test_a_model_without_recordings_loads_as_ever(tmp_path: Path, plugin: ModuleType) -> None:
    assert loaded(tmp_path, plugin) == ("", [])


def test_recorded_bodies_are_replayed_in_the_order_of_their_names(tmp_path: Path, plugin: ModuleType) -> None:
    front = {"inputs": [{"name": "INPUT", "shape": [3], "datatype": "FP32", "parameters": {"binary_data_size": 12}}]}
    put(tmp_path, "b.json", json.dumps(BODY).encode())
    put(tmp_path, "a.bin", json.dumps(front).encode() + np.array([7, 8, 9], np.float32).tobytes())
    put(tmp_path, "notes.txt", b"not a request")

    reason, batches = loaded(tmp_path, plugin)

    assert reason == ""
    assert [batch.input("INPUT").tolist() for batch in batches] == [[7, 8, 9], [1.5, 2.5]]


def test_braces_and_quotes_in_strings_do_not_end_the_json(plugin: ModuleType) -> None:
    replaying = importlib.import_module("naiad_recorded_warmup.replaying")
    text = {"name": "T", "shape": [2], "datatype": "BYTES", "data": ['}"]\\', "ü"]}
    more = {"name": "B", "shape": [2], "datatype": "BOOL", "parameters": {"binary_data_size": 2}}
    body = {"id": "7", "inputs": [text, more], "parameters": {"sequence_id": 5, "sequence_start": True, "own": 1}}

    request = replaying.request_of(json.dumps(body).encode() + b"\x00\x01", "m", 1)

    assert request.inputs["T"].array.tolist() == [b'}"]\\', "ü".encode()]
    assert request.inputs["B"].array.tolist() == [False, True]
    assert (request.correlation_id, request.sequence_start, request.parameters) == (5, True, {"own": 1})


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("x.json", b"{", "its JSON has no end"),
        ("x.json", b"{}", "KeyError: 'inputs'"),
        ("x.json", json.dumps(BODY).encode() + b"more", "4 bytes follow the last tensor"),
        ("x.json", body_of(parameters={"shared_memory_region": "r"}), "is in shared memory"),
        ("x.bin", body_of(parameters={"binary_data_size": 4}) + b"ab", "needs 4 bytes behind the JSON, and 2 are left"),
        ("x.json", body_of(name="OTHER", data=[1]), "unexpected inference input 'OTHER'"),
    ],
)
def test_a_file_that_is_no_request_of_the_model_fails_the_load_by_its_name(
    tmp_path: Path, plugin: ModuleType, name: str, content: bytes, message: str
) -> None:
    put(tmp_path, name, content)

    reason, _ = loaded(tmp_path, plugin)

    assert name in reason
    assert message in reason


# Recording


class Answering(BaseHTTPRequestHandler):
    """A server that answers everything with 200, and a request that says so with 400."""

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.send_response(400 if b"bad" in body else 200)
        self.send_header("Content-Length", "2")
        self.end_headers()
        self.wfile.write(b"{}")

    def log_message(self, *_: object) -> None:
        return None


@pytest.fixture
def ports(tmp_path: Path, plugin: ModuleType) -> Iterator[int]:
    """The port of a recorder that keeps two requests of each model, in front of a server."""
    recording = importlib.import_module("naiad_recorded_warmup.recording")
    with ThreadingHTTPServer(("127.0.0.1", 0), Answering) as behind:
        target = f"127.0.0.1:{behind.server_address[1]}"
        passing = recording.handler(recording.Recorder(tmp_path, 2), target)
        with ThreadingHTTPServer(("127.0.0.1", 0), passing) as front:
            threads = [threading.Thread(target=each.serve_forever, args=(0.01,)) for each in (behind, front)]
            for thread in threads:
                thread.start()
            yield front.server_address[1]
            for each in (front, behind):
                each.shutdown()
            for thread in threads:
                thread.join()


def post(port: int, path: str, body: bytes, **headers: str) -> int:
    request = urllib.request.Request(f"http://127.0.0.1:{port}{path}", body, headers)
    try:
        with urllib.request.urlopen(request) as response:
            return response.status
    except urllib.error.HTTPError as error:
        with error:
            return error.code


def test_the_first_requests_that_are_answered_well_are_kept(tmp_path: Path, ports: int) -> None:
    (tmp_path / "m").mkdir()
    json_body = json.dumps(BODY).encode()
    length = {"Inference-Header-Content-Length": "2"}

    statuses = [
        post(ports, "/v2/models/m/infer", b"bad"),
        post(ports, "/v2/models/other/infer", b"{}"),
        post(ports, "/v2/models/m/ready", b"{}"),
        post(ports, "/v2/models/m/versions/1/infer", json_body),
        post(ports, "/v2/models/m/infer", b"{}1234", **length),
        post(ports, "/v2/models/m/infer", b"{}"),
    ]

    assert statuses == [400, 200, 200, 200, 200, 200]
    kept = {path.relative_to(tmp_path).as_posix(): path.read_bytes() for path in tmp_path.rglob("recorded-*")}
    assert kept == {
        "m/warmup/requests/recorded-0001.json": json_body,
        "m/warmup/requests/recorded-0002.bin": b"{}1234",
    }


def test_what_was_recorded_can_be_replayed(tmp_path: Path, ports: int, plugin: ModuleType) -> None:
    (tmp_path / "m").mkdir()
    post(ports, "/v2/models/m/infer", json.dumps(BODY).encode())

    reason, batches = loaded(tmp_path, plugin)

    assert reason == ""
    assert [batch.input("INPUT").tolist() for batch in batches] == [[1.5, 2.5]]
