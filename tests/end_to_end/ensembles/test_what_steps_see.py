"""What goes with a request through the steps of an ensemble on a running server, and what the steps have of it."""

import json
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tritonclient.grpc as grpc
from tritonclient.utils import InferenceServerException

from .. import models
from ..clients.driving import Driven
from ..conftest import Start
from ..gates import Gate
from ..running import Running, post, until
from ..test_metrics import scrape
from . import sources

X = np.array([1, 2, 3, 4], np.float32)
PENDING = ("nv_inference_pending_request_count", frozenset({"model": "waiting", "version": "1"}.items()))
BODY: dict[str, Any] = {"inputs": [{"name": "X", "datatype": "FP32", "shape": [4], "data": [1, 2, 3, 4]}]}


def asked(client: Driven, model: str, x: np.ndarray = X, **more: Any) -> Any:
    return client.infer(model, [client.tensor("X", x)], **more)


def test_every_step_hears_what_the_client_said(client: Driven) -> None:
    sequence = {"sequence_id": 7, "sequence_start": True, "sequence_end": True}

    result = asked(client, "telling", request_id="r", timeout=9_000_000, parameters={"lang": "de", "n": 3}, **sequence)

    heard = [json.loads(result.as_numpy(name)[0]) for name in ("FIRST", "SECOND")]
    told = {"id": "r", "sequence": [7, 3], "timeout": 9_000_000, "parameters": {"lang": "de", "n": 3}}
    assert heard == [told, told]


def test_a_step_shares_the_batches_of_its_model_with_other_requests(
    make_client: Callable[..., Driven], joining: Running
) -> None:
    clients = [make_client("http") for _ in range(4)]

    with ThreadPoolExecutor(4) as pool:
        answers = list(pool.map(lambda client: asked(client, "joined", X[None]).as_numpy("Y").tolist(), clients))

    (statistics,) = joining.ask("GET", "/v2/models/together/stats").document["model_stats"]
    assert answers == [[[4, 5, 6, 7]]] * 4
    assert [(each["batch_size"], each["compute_infer"]["count"]) for each in statistics["batch_stats"]] == [(4, 1)]


def test_an_output_that_a_step_leaves_out_is_an_optional_input_left_out(client: Driven) -> None:
    assert asked(client, "adding").as_numpy("Y").tolist() == [2, 4, 6, 8]
    assert asked(client, "adding", -X).as_numpy("Y").tolist() == [99, 98, 97, 96]


def test_an_output_that_is_left_out_and_needed_is_told_with_the_step_and_the_input(client: Driven) -> None:
    with pytest.raises(InferenceServerException) as caught:
        asked(client, "needing", -X)

    told = caught.value.message()
    assert "in ensemble 'needing', unexpected deadlock, at least one output is not set" in told
    assert told.endswith("step 1 needs 'positive' for its input 'a', and it was not produced")


@pytest.fixture
def waiting(repository: Path, gate: Gate) -> Path:
    """A repository with the ensemble `waiting`, whose second step waits at the gate with four instances."""
    gate.write_model(repository, "waits", 'backend: "python" instance_group [ { kind: KIND_CPU count: 4 } ]')
    steps = [
        sources.step("echo", {"x": "X"}, {"output": "between"}),
        sources.step("waits", {"x": "between"}, {"output": "Y"}),
    ]
    sources.write(repository, "waiting", sources.ensemble("X FP32 -1", "Y FP32 -1", *steps, batch=0))
    return repository


def test_only_so_many_requests_of_a_step_go_on_at_once(start: Start, waiting: Path, gate: Gate) -> None:
    config = waiting / "waiting" / "config.pbtxt"
    config.write_text(
        config.read_text().replace("ensemble_scheduling {", "ensemble_scheduling { max_inflight_requests: 2")
    )
    server = start()

    with server.connections(4) as wires:
        for wire in wires:
            wire.send(post("/v2/models/waiting/infer", BODY))
        gate.wait_until_entered(2)
        until(lambda: scrape(server).get(PENDING) == 2)
        entered = gate.entered
        gate.open()
        answers = [wire.answer() for wire in wires]

    assert entered == 2
    assert [answer and answer.status for answer in answers] == [200] * 4
    server.stop()


CANCELLABLE = """
from pathlib import Path
from time import sleep

import triton_python_backend_utils as pb_utils

HERE = Path(__file__).parent

class TritonPythonModel:
    def execute(self, requests):
        (HERE / "executing").touch()
        while not requests[0].is_cancelled():
            sleep(0.002)
        (HERE / "cancelled").touch()
        return [pb_utils.InferenceResponse([]) for request in requests]
"""


@pytest.mark.parametrize("protocol", ["http", "grpc"])
def test_a_client_that_leaves_takes_the_running_step_back(start: Start, waiting: Path, protocol: str) -> None:
    tensors = [f'{kind} [ {{ name: "x" data_type: TYPE_FP32 dims: [ -1 ] }} ]' for kind in ("input", "output")]
    tensors[1] = tensors[1].replace('"x"', '"output"')
    folder = models.write(waiting, "waits", CANCELLABLE, f'backend: "python" {" ".join(tensors)}') / "1"
    server = start()

    if protocol == "http":
        with server.connected() as wire:
            wire.send(post("/v2/models/waiting/infer", BODY))
            until((folder / "executing").exists)
    else:
        with grpc.InferenceServerClient(f"127.0.0.1:{server.grpc_port}") as client:
            given = grpc.InferInput("X", [4], "FP32")
            given.set_data_from_numpy(X)
            call = client.async_infer("waiting", [given], lambda result, error: None)
            until((folder / "executing").exists)
            call.cancel()

    until((folder / "cancelled").exists)
    server.stop()


def test_a_trace_file_has_the_steps_below_their_request(
    start: Start, waiting: Path, gate: Gate, tmp_path: Path
) -> None:
    gate.open()
    settings = (f"triton,file={tmp_path / 't.json'}", "rate=1", "level=TIMESTAMPS")
    server = start(*(f"--trace-config={setting}" for setting in settings))

    assert server.ask("POST", "/v2/models/waiting/infer", BODY | {"id": "r"}).status == 200
    server.stop()

    heads = [each for each in json.loads((tmp_path / "t.json").read_text()) if "model_name" in each]
    assert [(each["model_name"], each.get("parent_id"), each["request_id"]) for each in heads] == [
        ("waiting", None, "r"),
        ("echo", heads[0]["id"], "r"),
        ("waits", heads[0]["id"], "r"),
    ]
