"""A configuration with ten different mistakes: all are told at once, with file, line and column, wherever one looks."""

import json
import re
import subprocess
from pathlib import Path

import pytest

from . import models
from .running import NAIAD, Running

CONFIG = """name: "another"
max_batch_sise: 8
max_batch_size: "eight"
input [
  { name: "x" data_type: TYPE_FP31 dims: [ -1 ] },
  { name: "x" data_type: TYPE_FP32 dims: [ 0 ] }
]
output { name: "output" data_type: TYPE_FP32 dims: [ -1 ] label_filename: "../labels.txt" }
instance_group [ { count: 1 count: 2 kind: KIND_CPU } ]
dynamic_batching {
  preferred_batch_size: [ 4, -2 ]
  max_queue_delay_microsecond: 100
}
parameters { key: "k" value: "plain" }
"""

MISTAKES = {
    "1:1": "name: unexpected directory name",
    "2:1": "max_batch_sise: unknown key 'max_batch_sise'.*did you mean 'max_batch_size'",
    "3:17": 'max_batch_size: expected an integer .* found the string "eight"',
    "5:26": r"input\[0\].data_type: unknown value 'TYPE_FP31' \(did you mean 'TYPE_FP32'",
    "6:5": r"input\[1\].name: .*given more than once",
    "6:44": r"input\[1\].dims\[0\]: .*not 0",
    "8:59": r"output\[0\].label_filename: .*leaves the model folder",
    "9:29": r"instance_group\[0\].count: 'count' is given more than once",
    "11:30": r"dynamic_batching.preferred_batch_size\[1\]: .*not -2",
    "12:3": "dynamic_batching.max_queue_delay_microsecond: .*did you mean 'max_queue_delay_microseconds'",
    "14:30": r'parameters\["k"\]: expected a message',
}


def assert_all_are_told(told: str, file: str) -> None:
    """Each mistake has a line of its own, in the order of the file, and there is no other."""
    lines = [line.strip() for line in told.splitlines() if file in line]

    places = [line.partition(file)[2].lstrip(":").split(": ")[0] for line in lines]
    assert places == list(MISTAKES)
    for line, mistake in zip(lines, MISTAKES.values(), strict=True):
        assert re.search(mistake, line), line


@pytest.fixture
def mistaken(shared: Running) -> Path:
    """The configuration with the mistakes, in the repository of the module's server."""
    return models.write(shared.repository, "mistaken", models.ECHO, CONFIG) / "config.pbtxt"


def test_the_answer_to_a_load_and_the_index_tell_every_mistake(server: Running, mistaken: Path) -> None:
    answer = server.load("mistaken")
    (entry,) = server.entries("mistaken")
    refused = server.infer("mistaken", 1)
    server.unload("mistaken")

    assert (answer.status, entry["state"], refused.status) == (400, "UNAVAILABLE", 503)
    for told in (answer.error, entry["reason"], refused.error):
        assert_all_are_told(told, str(mistaken))


def test_check_tells_every_mistake(mistaken: Path) -> None:
    done = subprocess.run(
        [NAIAD, "check", mistaken.parents[1]], capture_output=True, text=True, timeout=60, check=False
    )

    assert (done.returncode, done.stderr) == (1, "")
    assert f"mistaken: {len(MISTAKES)} problems" in done.stdout
    assert_all_are_told(done.stdout, str(mistaken))


def test_a_configuration_in_a_load_request_is_told_every_mistake(server: Running) -> None:
    config = {
        "max_batch_sise": 1,
        "max_batch_size": -1,
        "backend": 7,
        "input": [{"name": "x", "data_type": "FLOAT", "dims": [0]}, {"name": "x", "dims": [-1]}],
        "output": {"name": "y"},
        "instance_group": [{"count": 2000}],
        "dynamic_batching": {"preferred_batch_size": [-2], "max_queue_delay_microseconds": -1},
        "parameters": {"k": "plain"},
    }

    answer = server.load("echo", config=json.dumps(config))

    paths = re.findall(r"^config of the load request: ([^:]+): ", answer.error, re.MULTILINE)
    assert answer.status == 400
    assert sorted(paths) == [
        "backend",
        "dynamic_batching.max_queue_delay_microseconds",
        "dynamic_batching.preferred_batch_size[0]",
        "input[0].data_type",
        "input[0].dims[0]",
        "input[1].name",
        "instance_group[0].count",
        "max_batch_sise",
        "max_batch_size",
        "output",
        'parameters["k"]',
    ]
    assert "the last reload failed" in server.entries("echo")[0]["reason"]
    assert server.load("echo").status == 200
    assert "reason" not in server.entries("echo")[0]
