"""Warmups of a whole server: what models get before they serve, what is told meanwhile, and what cannot be."""

import os
import pty
import subprocess
from pathlib import Path

from . import models
from .conftest import Start
from .gates import Gate
from .running import LOCAL, NAIAD, Running, until

ROOT = Path(__file__).resolve().parents[2]

SAMPLE = """
model_warmup [ {{
  name: "usual" batch_size: {batch} count: {count}
  inputs [ {{ key: "x" value {{ data_type: TYPE_FP32 dims: [ 2 ] zero_data: true }} }} ]
}} ]
"""
TELLS = """
import json
from pathlib import Path

import triton_python_backend_utils as pb_utils

HERE = Path(__file__).parent

class TritonPythonModel:
    def execute(self, requests):
        batch = [{tensor.name(): tensor.as_numpy().tolist() for tensor in each.inputs()} for each in requests]
        with (HERE / "told").open("a") as told:
            told.write(json.dumps(batch) + "\\n")
        return [self._answer(each) for each in requests]

    def _answer(self, request):
        x = pb_utils.get_input_tensor_by_name(request, "x").as_numpy()
        return pb_utils.InferenceResponse([pb_utils.Tensor("y", x), pb_utils.Tensor("next", x[:, :1])])
"""
SEQUENCES = """
backend: "python"
max_batch_size: 4
input [ { name: "x" data_type: TYPE_FP32 dims: [ 2 ] } ]
output [ { name: "y" data_type: TYPE_FP32 dims: [ 2 ] } ]
sequence_batching {
  oldest { max_candidate_sequences: 4 }
  control_input [
    { name: "START" control [ { kind: CONTROL_SEQUENCE_START int32_false_true: [ 0, 1 ] } ] },
    { name: "END" control [ { kind: CONTROL_SEQUENCE_END bool_false_true: [ false, true ] } ] },
    { name: "ID" control [ { kind: CONTROL_SEQUENCE_CORRID data_type: TYPE_UINT64 } ] }
  ]
  state [ {
    input_name: "before" output_name: "next" data_type: TYPE_FP32 dims: [ 1 ]
    initial_state: { name: "zero" data_type: TYPE_FP32 dims: [ 1 ] zero_data: true }
  } ]
}
"""


def explicit(start: Start, *words: str) -> Running:
    return start("--model-control-mode=explicit", "--log-verbose=1", *words)


def test_a_model_of_sequences_is_warmed_up_with_sequences_of_its_own(start: Start, repository: Path) -> None:
    folder = models.write(repository, "sums", TELLS, SEQUENCES + SAMPLE.format(batch=2, count=1))
    server = explicit(start)

    assert server.load("sums").status == 200

    told = (folder / "1" / "told").read_text()
    rest = '"before": [[0.0]], "x": [[0.0, 0.0]]'
    first, second = (f'{{"START": [[1]], "END": [[true]], "ID": [[{number}]], {rest}}}' for number in (1, 2))
    assert told == f"[{first}, {second}]\n"
    (statistics,) = server.ask("GET", "/v2/models/sums/stats").document["model_stats"]
    assert statistics["inference_count"] == 0
    server.stop()


def test_a_version_is_loading_and_says_how_far_it_is_until_every_instance_is_warm(
    start: Start, repository: Path, gate: Gate
) -> None:
    gate.write_model(repository, "waits", f'backend: "python" {SAMPLE.format(batch=1, count=2)}')
    server = explicit(start)

    with server.connected() as wire:
        wire.send(b"POST /v2/repository/models/waits/load HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n")
        gate.wait_until_entered()
        (entry,) = server.entries("waits")
        refused = server.infer("waits", 1)
        ready = server.ask("GET", "/v2/models/waits/ready").status
        until(lambda: "model 'waits' version 1 is still warming up: 1 of 2, instance 'waits_0' runs" in server.log)
        gate.open()
        loaded = wire.answer()

    assert (entry["state"], entry["reason"]) == (
        "LOADING",
        "warming up: 1 of 2, instance 'waits_0' runs sample 'usual'",
    )
    assert (refused.status, ready) == (503, 503)
    assert loaded is not None
    assert loaded.status == 200
    assert server.infer("waits", 1).status == 200
    for iteration in (1, 2):
        told = f"model 'waits' instance 'waits_0' is running warmup sample 'usual' for iteration {iteration}"
        assert told in server.log
    server.stop()


def test_a_terminal_of_80_columns_shows_how_far_a_warmup_is(repository: Path, gate: Gate) -> None:
    gate.write_model(repository, "waits", f'backend: "python" {SAMPLE.format(batch=1, count=2)}')
    ours, theirs = pty.openpty()
    environment = os.environ | {"TERM": "xterm", "COLUMNS": "80"}
    command = [NAIAD, "serve", *LOCAL, "--http-port=0", repository]
    process = subprocess.Popen(command, stdin=theirs, stdout=theirs, stderr=theirs, env=environment)
    os.close(theirs)

    written = b""
    while b"waiting for waits (warming up: 1 of 2" not in written:
        written += os.read(ours, 65536)
    gate.open()
    while b"http frontend listens" not in written:
        written += os.read(ours, 65536)
    process.terminate()
    status = process.wait(timeout=60)
    os.close(ours)

    assert status == 0


def test_a_sample_that_fails_fails_the_load_and_names_all_that_helps(start: Start, repository: Path) -> None:
    source = models.ECHO.replace("return x", "raise ValueError('not like this')")
    models.write(repository, "fails", source, f'backend: "python" {SAMPLE.format(batch=1, count=1)}')
    server = explicit(start, "--load-model=echo")

    answer = server.load("fails")

    assert answer.status == 400
    assert "failed to run warmup sample 'usual': ValueError: not like this (instance 'fails_0')" in answer.error
    assert server.infer("echo", 1).status == 200
    server.stop()


ENSEMBLE = """
platform: "ensemble"
input [ { name: "x" data_type: TYPE_FP32 dims: [ -1 ] } ]
output [ { name: "y" data_type: TYPE_FP32 dims: [ -1 ] } ]
ensemble_scheduling { step [ {
  model_name: "echo" model_version: -1 input_map { key: "x" value: "x" } output_map { key: "output" value: "y" }
} ] }
"""


def test_samples_of_an_ensemble_are_refused_with_their_place(start: Start, repository: Path) -> None:
    (repository / "joined" / "1").mkdir(parents=True)
    config = repository / "joined" / "config.pbtxt"
    config.write_text(ENSEMBLE + SAMPLE.format(batch=1, count=1))
    server = explicit(start)

    answer = server.load("joined")

    assert answer.status == 400
    assert answer.error.startswith(
        f"{config}:9:1: model_warmup: model_warmup can not be specified for ensemble 'joined'"
    )
    server.stop()


def test_an_installed_plugin_replays_what_it_has_recorded(start: Start, repository: Path, tmp_path: Path) -> None:
    """As an installed distribution: a folder of the path with its metadata and its module."""
    installed = tmp_path / "installed" / "naiad_recorded_warmup-0.1.0.dist-info"
    installed.mkdir(parents=True)
    (installed / "METADATA").write_text("Metadata-Version: 2.1\nName: naiad-recorded-warmup\nVersion: 0.1.0\n")
    (installed / "entry_points.txt").write_text("[naiad]\nrecorded-warmup = naiad_recorded_warmup\n")
    source = ROOT / "examples" / "recorded-warmup" / "src"
    recorded = repository / "echo" / "warmup" / "requests"
    recorded.mkdir(parents=True)
    (recorded / "first.json").write_text('{"inputs": [{"name": "x", "datatype": "FP32", "shape": [1], "data": [7]}]}')
    server = start("--log-verbose=1", PYTHONPATH=f"{installed.parent}:{source}")

    assert server.infer("echo", 1).status == 200

    assert "instance 'echo_0' is running warmup sample 'first.json' for iteration 1" in server.log
    server.stop()
