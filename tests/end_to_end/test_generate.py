"""The generate extension of a whole server: functions that yield, asked by curl and by plain sockets."""

import http.client
import json
import shutil
import subprocess
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from . import models
from .conftest import Start
from .gates import Gate
from .running import PATIENCE, Running, refusal, until

STORY = """
from collections.abc import Iterator

import numpy as np

from naiad_custom import BYTES, INT32, Array, model

@model(outputs="text_output")
def story(text_input: Array[BYTES, 1], count: Array[INT32, 1]) -> Iterator[Array[BYTES, 1]]:
    for number in range(int(count[0])):
        yield np.array([text_input[0] + b" %d" % number], object)
"""

WAITING = """
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from naiad_custom import INT32, Array, model

@model(outputs="number")
def waiting(count: Array[INT32, 1]) -> Iterator[Array[INT32, 1]]:
    try:
        for number in range(int(count[0])):
            yield np.array([number], np.int32)
            if number == 0:
                wait()
    finally:
        (Path(__file__).parent / "left").touch()
"""


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """The models `echo`, and `story`, which yields."""
    folder = tmp_path / "models"
    models.write(folder, "echo", models.ECHO)
    models.write(folder, "story", STORY)
    return folder


@pytest.fixture
def server(start: Start, repository: Path) -> Iterator[Running]:
    """A server of these models."""
    running = start()
    assert running.port
    yield running
    running.stop()


def documents(body: bytes) -> list[Any]:
    """The documents of a stream's events."""
    events = body.decode().split("\n\n")
    assert events.pop() == ""
    return [json.loads(event.removeprefix("data: ")) for event in events]


def stream(server: Running, model: str, **members: Any) -> tuple[http.client.HTTPConnection, http.client.HTTPResponse]:
    """A stream that has begun, and its connection."""
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=PATIENCE)
    connection.request("POST", f"/v2/models/{model}/generate_stream", json.dumps(members))
    return connection, connection.getresponse()


@pytest.mark.skipif(shutil.which("curl") is None, reason="curl is not installed")
def test_curl_shows_the_events_of_a_stream(server: Running) -> None:
    url = f"http://{server.url}/v2/models/story/generate_stream"
    document = json.dumps({"id": "1", "text_input": "once", "parameters": {"count": 2}})

    told = subprocess.check_output(["curl", "--silent", "--no-buffer", url, "--data", document], text=True)

    assert told == (
        'data: {"id":"1","model_name":"story","model_version":"1","text_output":"once 0"}\n\n'
        'data: {"id":"1","model_name":"story","model_version":"1","text_output":"once 1"}\n\n'
    )


def test_many_streams_at_once_keep_apart(server: Running) -> None:
    def read(name: str) -> list[str]:
        connection, answer = stream(server, "story", text_input=name, count=300)
        told = [document["text_output"] for document in documents(answer.read())]
        connection.close()
        return told

    names = [f"teller {number}" for number in range(12)]
    with ThreadPoolExecutor(len(names)) as readers:
        found = list(readers.map(read, names))

    assert found == [[f"{name} {number}" for number in range(300)] for name in names]


def test_generate_gives_one_response_and_refuses_more_or_none(server: Running) -> None:
    one, none, many = (
        server.ask("POST", "/v2/models/story/generate", {"text_input": "once", "count": count}) for count in (1, 0, 2)
    )

    assert (one.status, one.document) == (
        200,
        {"model_name": "story", "model_version": "1", "text_output": "once 0"},
    )
    assert "generate expects model to produce exactly 1 response" in refusal(none)
    assert "generate expects model to produce exactly 1 response" in refusal(many)


def test_a_model_with_one_response_can_be_asked_too(server: Running) -> None:
    whole = server.ask("POST", "/v2/models/echo/generate", {"x": [1.5, -2]})
    connection, answer = stream(server, "echo", x=0.1)
    events = documents(answer.read())
    connection.close()

    assert whole.document == {"model_name": "echo", "model_version": "1", "output": [1.5, -2.0]}
    assert events == [{"model_name": "echo", "model_version": "1", "output": 0.1}]


@pytest.mark.parametrize(
    ("document", "headers", "status", "told"),
    [
        ({"text_input": 5, "count": 1}, {}, 400, "input 'text_input' takes strings"),
        ({"text_input": ["a", "b"], "count": 1}, {}, 400, "can not convert input 'text_input' to tensor"),
        ({"text_input": "once"}, {}, 400, "missing required input(s) ['count']"),
        ({"text_input": "once", "count": 1, "triton_x": 1}, {}, 400, "reserved for Triton usage"),
        ({}, {"Content-Encoding": "gzip"}, 400, "does not accept a compressed body"),
        ({}, {"Request-Timeout": "soon"}, 400, "Request-Timeout must be a number of seconds"),
    ],
)
@pytest.mark.parametrize("action", ["generate", "generate_stream"])
def test_what_is_wrong_is_told_before_a_stream_begins(
    server: Running, action: str, document: dict[str, Any], headers: dict[str, str], status: int, told: str
) -> None:
    answer = server.ask("POST", f"/v2/models/story/{action}", document, headers)

    assert told in refusal(answer, status)


def test_infer_refuses_a_model_that_yields_and_names_the_ways_to_ask_it(server: Running) -> None:
    given = {"name": "count", "datatype": "INT32", "shape": [1], "data": [1]}

    told = refusal(server.ask("POST", "/v2/models/story/infer", {"inputs": [given]}), 501)

    assert "doesn't support models with decoupled transaction policy" in told
    assert "generate_stream" in told


def test_a_function_whose_reader_left_is_closed(start: Start, repository: Path, gate: Gate) -> None:
    folder = models.write(repository, "waiting", WAITING + gate.function("wait"))
    running = start()
    connection, answer = stream(running, "waiting", count=2**30)
    assert answer.readline().startswith(b"data: ")
    answer.close()
    connection.close()
    gate.open()

    assert until(lambda: (folder / "1" / "left").exists())
    running.stop()


def test_a_stream_in_flight_ends_before_the_server_does(start: Start, repository: Path, gate: Gate) -> None:
    models.write(repository, "waiting", WAITING + gate.function("wait"))
    running = start()
    connection, answer = stream(running, "waiting", count=3)
    first = answer.readline() + answer.readline()
    running.terminate()
    until(lambda: "Requests in flight have" in running.log)
    gate.open()
    rest = answer.read()
    connection.close()

    assert [document["number"] for document in documents(first + rest)] == [0, 1, 2]
    assert running.exit_status() == 0


def test_a_stream_that_outlasts_the_server_ends_with_a_word(start: Start, repository: Path, gate: Gate) -> None:
    models.write(repository, "waiting", WAITING + gate.function("wait"))
    running = start("--exit-timeout-secs=1")
    connection, answer = stream(running, "waiting", count=3)
    assert running.port
    running.terminate()
    told = documents(answer.read())
    connection.close()

    assert told[0]["number"] == 0
    assert "the server stopped before the model had answered" in told[1]["error"]
    gate.open()
    running.exit_status()
