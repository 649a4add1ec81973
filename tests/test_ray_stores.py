"""Groups of replicas on Ray whose models are in a store: the file, its check, its updates, and a replica's server."""

import asyncio
import json
from argparse import Namespace
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import obstore
import pytest
import requests
from obstore.store import S3Store

from naiad.errors import NotFoundError
from naiad_ray.capacity import digest
from naiad_ray.command import run_check
from naiad_ray.local import LocalServer
from naiad_ray.raw import HttpRequest, RawAnswer
from naiad_ray.reading import read_description

from .written import ECHO

FILE = """
repository: {url}
groups:
  - {{name: large, models: [large, nothing-*]}}
  - {{name: rest}}
"""
MODELS = {"large": ECHO.replace("@model", "@model(max_batch_size=300)"), "small": ECHO}
BODY = json.dumps({"inputs": [{"name": "x", "datatype": "FP32", "shape": [1, 1], "data": [7]}]}).encode()


@dataclass(frozen=True)
class Bucket:
    """A bucket with the models `large` and `small`, and the file of an application that serves them."""

    url: str
    store: S3Store
    file: Path

    def put(self, path: str, content: bytes) -> None:
        obstore.put(self.store, f"models/{path}", content, use_multipart=False)


@pytest.fixture
def bucket(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Bucket]:
    from moto.server import ThreadedMotoServer  # takes most of a second, and all tests are collected

    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "key")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "secret")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    server = ThreadedMotoServer("127.0.0.1", port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    requests.post(f"http://{host}:{port}/moto-api/reset", timeout=10)
    requests.put(f"http://{host}:{port}/bucket", timeout=10)
    endpoint = f"http://{host}:{port}"
    store = S3Store("bucket", endpoint=endpoint, region="us-east-1", client_options={"allow_http": True})
    bucket = Bucket(f"s3://{host}:{port}/bucket/models", store, tmp_path / "naiad-ray.yaml")
    bucket.file.write_text(FILE.format(url=bucket.url))
    for name, source in MODELS.items():
        bucket.put(f"{name}/1/model.py", source.encode())
        bucket.put(f"{name}/config.pbtxt", f'name: "{name}"'.encode())
    yield bucket
    server.stop()


def test_the_models_of_a_store_are_checked_as_those_of_a_folder(
    bucket: Bucket, capsys: pytest.CaptureFixture[str]
) -> None:
    bucket.put("broken/config.pbtxt", b"max_batch_sise: 1")

    status = run_check(Namespace(path=str(bucket.file)))

    lines = capsys.readouterr().out.splitlines()
    assert status == 1
    assert "600 requests" in lines[1]
    assert (lines[2], lines[3].partition(":")[0]) == ("  large: ok", "  nothing-*")
    assert "did you mean 'max_batch_size'?" in lines[5]
    assert lines[-1] == "  small: ok"


def test_the_url_of_a_store_is_a_repository_without_a_file(bucket: Bucket, capsys: pytest.CaptureFixture[str]) -> None:
    status = run_check(Namespace(path=bucket.url))

    assert (status, capsys.readouterr().out.splitlines()[2:]) == (0, ["  large: ok", "  small: ok"])


def test_a_store_without_models_is_an_error_that_names_it(bucket: Bucket) -> None:
    with pytest.raises(NotFoundError, match="/bucket/nothing' cannot be read"):
        run_check(Namespace(path=bucket.url.replace("/models", "/nothing")))


def test_a_changed_object_replaces_the_replicas_and_a_second_look_does_not(bucket: Bucket) -> None:
    description = read_description(bucket.file)
    group = description.groups[0]

    before, again = digest(description, group), digest(description, group)
    bucket.put("large/1/model.py", ECHO.encode() + b"\n")

    assert before == again != digest(description, group)


def test_a_replica_serves_the_models_of_its_group_from_the_store(bucket: Bucket) -> None:
    large, _ = read_description(bucket.file).groups

    async def serve() -> tuple[RawAnswer, list[str]]:
        local = await LocalServer.start((bucket.url,), {"model-control-mode": "none"}, large.models, ())
        try:
            answer = await local.answer(HttpRequest("POST", b"/v2/models/large/infer", b"", (), BODY))
            return answer, [entry.name for entry in await local.server.fresh_index(ready=True)]
        finally:
            await local.stop()

    answer, ready = asyncio.run(serve())

    assert (answer.status, json.loads(answer.body)["outputs"][0]["data"], ready) == (200, [7.0], ["large"])
