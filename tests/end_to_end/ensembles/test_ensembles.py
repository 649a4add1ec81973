"""Ensembles on a running server, asked by every client of Triton's library."""

import threading
from collections.abc import AsyncIterator, Callable
from concurrent.futures import ThreadPoolExecutor
from queue import Queue
from typing import Any

import numpy as np
import pytest
from tritonclient.utils import InferenceServerException

from .. import models
from ..clients.driving import Driven
from ..running import PATIENCE, Running
from . import sources

X = np.arange(8, dtype=np.float32).reshape(2, 4)
SCORES = (X + 1) * 2 * np.array([1, 2, 3, 4], np.float32)


def inputs(client: Driven, x: np.ndarray = X) -> list[Any]:
    return [client.tensor("X", x)]


def test_a_request_goes_through_models_of_every_kind(client: Driven, joining: Running) -> None:
    result = client.infer("scoring", inputs(client))

    assert result.as_numpy("SCORES").tolist() == SCORES.tolist()
    assert result.as_numpy("TWICE").tolist() == ((X + 1) * 2).tolist()


def test_only_the_steps_of_the_requested_output_run(client: Driven, joining: Running) -> None:
    def executed() -> int:
        document = joining.ask("GET", "/v2/models/slowly/stats").document
        return int(document["model_stats"][0]["inference_count"])

    before = executed()
    result = client.infer("scoring", inputs(client), outputs=[client.wanted("SCORES")])

    assert result.as_numpy("SCORES").tolist() == SCORES.tolist()
    assert result.as_numpy("TWICE") is None
    assert executed() == before


def test_classes_have_the_labels_of_the_model_that_makes_them(client: Driven) -> None:
    result = client.infer("scoring", inputs(client), outputs=[client.wanted("SCORES", class_count=2)])

    assert result.as_numpy("SCORES").tolist() == [
        [b"32.000000:3:dog", b"18.000000:2:cat"],
        [b"64.000000:3:dog", b"42.000000:2:cat"],
    ]


def test_an_error_of_a_step_names_both_and_keeps_its_code(client: Driven) -> None:
    with pytest.raises(InferenceServerException) as caught:
        client.infer("scoring", inputs(client, X - 10))

    assert caught.value.message() == "in ensemble 'scoring', below zero (step 1 of 'scoring', model 'times_two')"
    assert caught.value.status() in ("400", "StatusCode.INVALID_ARGUMENT")


def test_requests_of_many_clients_are_all_answered_each_with_its_own(make_client: Callable[..., Driven]) -> None:
    clients = [make_client("grpc") for _ in range(4)]

    def ask(number: int) -> list[float]:
        client = clients[number % 4]
        x = np.full((1, 4), number, np.float32)
        return [float(client.infer("scoring", inputs(client, x)).as_numpy("TWICE")[0, 0]) for _ in range(10)]

    with ThreadPoolExecutor(4) as pool:
        answers = list(pool.map(ask, range(16)))

    assert answers == [[(number + 1) * 2.0] * 10 for number in range(16)]


def test_statistics_count_one_inference_a_row_and_the_times_of_the_steps(joining: Running) -> None:
    def counted() -> dict[str, Any]:
        (statistics,) = joining.ask("GET", "/v2/models/scoring/stats").document["model_stats"]
        return dict(statistics)

    before = counted()
    with joining.client() as client:
        client.infer("scoring", inputs(Driven("http", "", client, lambda answer: answer)))
    after = counted()

    assert after["inference_count"] - before["inference_count"] == 2
    assert after["execution_count"] - before["execution_count"] == 1
    passed = after["inference_stats"]["compute_infer"]["ns"] - before["inference_stats"]["compute_infer"]["ns"]
    assert passed > 1_000_000  # one of its steps sleeps for a millisecond


def test_the_configuration_shows_no_instances_and_that_it_is_decoupled(joining: Running) -> None:
    document = joining.ask("GET", "/v2/models/counting/config").document

    assert document["platform"] == "ensemble"
    assert document["instance_group"] == []
    assert document["model_transaction_policy"] == {"decoupled": True}


def counting(client: Driven, times: int) -> list[Any]:
    return [client.tensor("TIMES", np.array([times], np.int32), "INT32"), client.tensor("X", np.ones(4, np.float32))]


def test_a_decoupled_step_streams_through_the_steps_behind_it(make_client: Callable[..., Driven]) -> None:
    client = make_client("grpc")
    came: Queue[Any] = Queue()

    client.start_stream(lambda result, error: came.put((result, error)))
    client.async_stream_infer("counting", counting(client, 200), enable_empty_final_response=True)
    values = []
    while True:
        result, error = came.get(timeout=PATIENCE)
        assert error is None
        response = result.get_response()
        if response.outputs:
            values.append(float(result.as_numpy("Y")[0]))
        if response.parameters["triton_final_response"].bool_param:
            break
    client.stop_stream()

    assert values == [2.0 * (1 + number) for number in range(200)]


def test_an_asynchronous_stream_through_an_ensemble(make_client: Callable[..., Driven]) -> None:
    client = make_client("grpc.aio")

    async def requests() -> AsyncIterator[dict[str, Any]]:
        yield {"model_name": "counting", "inputs": counting(client, 5)}

    async def values() -> list[float]:
        return [float(result.as_numpy("Y")[0]) async for result, _ in client.itself.stream_infer(requests())]

    assert client.run(values()) == [2, 4, 6, 8, 10]


def test_a_stream_of_an_ensemble_as_events(joining: Running) -> None:
    body = {"TIMES": 3, "X": [1, 1, 1, 1]}
    answer = joining.ask("POST", "/v2/models/counting/generate_stream", body)

    assert answer.status == 200
    assert answer.body.count(b"data: ") == 3


@pytest.mark.parametrize("kind", ["triton_direct", "native_oldest", "onnx_direct"])
def test_sequences_go_through_an_ensemble(client: Driven, kind: str) -> None:
    def run(sequence: int) -> list[float]:
        found = []
        for place in range(4):
            given = [client.tensor("X", np.array([[place + sequence]], np.float32))]
            flags = {"sequence_start": place == 0, "sequence_end": place == 3}
            result = client.infer(f"summing_{kind}", given, sequence_id=sequence, **flags)
            found.append(float(result.as_numpy("Y")[0, 0]))
        return found

    assert run(71) == [71, 143, 216, 290]
    assert run(72) == [72, 145, 219, 294]


def test_a_model_that_is_unloaded_takes_its_ensemble_along_until_it_is_back(joining: Running) -> None:
    joining.unload("times_two")
    gone = joining.infer("scoring", 1, 2, 3, 4)
    ready = joining.ask("GET", "/v2/models/scoring/ready").status
    index = {each["name"]: each for each in joining.ask("POST", "/v2/repository/index").document}
    assert joining.load("times_two").status == 200

    assert gone.status == 503
    assert "depends on 'times_two' which has no loaded version" in gone.error
    assert ready != 200
    assert index["scoring"]["state"] in ("UNLOADING", "UNAVAILABLE")
    assert "depends on 'times_two'" in index["scoring"]["reason"]
    assert joining.ask("GET", "/v2/models/scoring/ready").status == 200


def test_clients_unload_an_ensemble_with_the_models_that_only_it_needs(
    make_client: Callable[..., Driven], joining: Running
) -> None:
    steps = [
        sources.step("only_here", {"x": "X"}, {"output": "Y"}),
        sources.step("plus_one", {"x": "Y"}, {"output": "Z"}),
    ]
    models.write(joining.repository, "only_here", models.ECHO.replace("Array[FP32, -1]", "Array[FP32, 4]"))
    sources.write(joining.repository, "passing", sources.ensemble("X FP32 4", "Z FP32 4", *steps, batch=0))
    client = make_client("grpc")

    client.load_model("passing")
    loaded = client.is_model_ready("only_here")
    client.unload_model("passing", unload_dependents=True)

    index = {each["name"]: each for each in joining.ask("POST", "/v2/repository/index").document}
    assert loaded
    assert index["only_here"]["state"] in ("UNLOADING", "UNAVAILABLE")
    assert index["plus_one"]["state"] == "READY"


def test_reloading_a_model_under_traffic_fails_no_request_of_its_ensemble(joining: Running) -> None:
    stop = threading.Event()

    def ask() -> int:
        count = 0
        with joining.client() as client:
            driven = Driven("http", "", client, lambda answer: answer)
            while not stop.is_set():
                result = driven.infer("scoring", inputs(driven))
                assert result.as_numpy("SCORES").tolist() == SCORES.tolist()
                count += 1
        return count

    with ThreadPoolExecutor(4) as pool:
        asking = [pool.submit(ask) for _ in range(4)]
        try:
            for generation in range(5):
                (joining.repository / "times_two" / "1" / "generation").write_text(str(generation))
                assert joining.load("times_two").status == 200
        finally:
            stop.set()
        counts = [each.result(PATIENCE) for each in asking]

    assert all(counts)
