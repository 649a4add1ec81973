"""The server as seen by curl, which many people try first."""

import json
import shutil
import subprocess
from pathlib import Path

import pytest

from . import models
from .running import Running

CURL = shutil.which("curl")
pytestmark = pytest.mark.skipif(CURL is None, reason="curl is not installed")

REQUEST = {"inputs": [{"name": "x", "datatype": "FP32", "shape": [3], "data": [1, 2, 3]}]}


def curl(server: Running, path: str, *words: str | Path) -> tuple[int, bytes]:
    """Status and body of a request that curl makes."""
    command = [str(CURL), "--silent", "--show-error", "--max-time", "30", "--write-out", "\n%{http_code}"]
    done = subprocess.run([*command, *words, f"http://{server.url}{path}"], capture_output=True, check=True)
    body, _, status = done.stdout.rpartition(b"\n")
    return int(status), body


def numbers(answer: tuple[int, bytes]) -> list[float]:
    assert answer[0] == 200, answer
    data: list[float] = json.loads(answer[1])["outputs"][0]["data"]
    return data


def test_the_plainest_request_is_answered(server: Running) -> None:
    assert curl(server, "/v2/health/ready") == (200, b'{"ready":true}')
    assert numbers(curl(server, "/v2/models/echo/infer", "--data", json.dumps(REQUEST))) == [1, 2, 3]


@pytest.mark.parametrize(
    "words",
    [
        ("--compressed",),
        ("--http1.0",),
        ("--http2",),
        ("--header", "Transfer-Encoding: chunked"),
        ("--header", "Expect: 100-continue"),
        ("--header", "Content-Type: application/json"),
    ],
    ids=lambda words: words[-1],
)
def test_a_request_may_be_sent_in_all_the_ways_of_curl(server: Running, words: tuple[str, ...]) -> None:
    answer = curl(server, "/v2/models/echo/infer", *words, "--data", json.dumps(REQUEST))

    assert numbers(answer) == [1, 2, 3]


def test_a_large_file_is_sent_as_a_raw_request(server: Running, tmp_path: Path) -> None:
    content = bytes(range(256)) * 40_000
    (tmp_path / "tensor").write_bytes(content)

    status, body = curl(
        server,
        "/v2/models/echo/infer",
        *("--header", "Inference-Header-Content-Length: 0", "--data-binary", f"@{tmp_path / 'tensor'}"),
    )

    assert (status, body.endswith(content)) == (200, True)


def test_a_file_beyond_the_limit_is_refused_with_the_option_to_change(server: Running, tmp_path: Path) -> None:
    (tmp_path / "tensor").write_bytes(bytes(70_000_000))

    status, body = curl(server, "/v2/models/echo/infer", "--data-binary", f"@{tmp_path / 'tensor'}")

    assert (status, b"--http-max-input-size" in body) == (400, True)


STORY = """
from collections.abc import Iterator

import numpy as np

from naiad_custom import BYTES, INT32, Array, model

@model(outputs="text_output")
def story(text_input: Array[BYTES, 1], count: Array[INT32, 1]) -> Iterator[Array[BYTES, 1]]:
    for number in range(int(count[0])):
        yield np.array([text_input[0] + b" %d" % number], object)
"""


def test_the_events_of_a_stream_are_shown(server: Running) -> None:
    document = json.dumps({"id": "1", "text_input": "once", "parameters": {"count": 2}})

    with models.loaded(server, "story", STORY):
        status, body = curl(server, "/v2/models/story/generate_stream", "--no-buffer", "--data", document)

    assert status == 200
    assert body.decode() == "".join(
        f'data: {{"id":"1","model_name":"story","model_version":"1","text_output":"once {number}"}}\n\n'
        for number in (0, 1)
    )
