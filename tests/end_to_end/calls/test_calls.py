"""Models that call models, in a real server that tritonclient asks over HTTP and gRPC."""

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tritonclient.grpc as grpc
import tritonclient.http as http
from tritonclient.utils import InferenceServerException

from ..models import write as write_model
from ..running import Running, until
from . import sources

Start = Callable[[], Running]


@pytest.fixture(params=[http, grpc], ids=["http", "grpc"])
def client(request: pytest.FixtureRequest, calling: Running) -> Iterator[Any]:
    """The module of a protocol and its client."""
    port = calling.port if request.param is http else calling.grpc_port
    opened = request.param.InferenceServerClient(f"127.0.0.1:{port}")
    opened.naiad_module = request.param
    yield opened
    opened.close()


def one(client: Any, model: str, value: int, **more: Any) -> int:
    given = client.naiad_module.InferInput("IN", [1], "INT32")
    given.set_data_from_numpy(np.array([value], np.int32))
    return int(client.infer(model, [given], **more).as_numpy("OUT")[0])


@pytest.mark.parametrize("model", ["both", "both_async"])
def test_a_model_answers_with_what_two_others_made(client: Any, model: str) -> None:
    inputs = []
    for name in ("INPUT0", "INPUT1"):
        inputs.append(client.naiad_module.InferInput(name, [4], "FP32"))
        inputs[-1].set_data_from_numpy(np.array([1, 2, 3, 4], np.float32) * len(inputs))

    answer = client.infer(model, inputs)

    assert answer.as_numpy("SUM").tolist() == [3, 6, 9, 12]
    assert answer.as_numpy("DIFFERENCE").tolist() == [-1, -2, -3, -4]


@pytest.mark.parametrize(("model", "times"), [("sum", 1), ("sum_async", 2)])
def test_a_model_adds_up_what_a_decoupled_one_sends(client: Any, model: str, times: int) -> None:
    assert one(client, model, 9) == 81 * times
    assert one(client, model, 0) == 0


def test_a_native_model_awaits_models_that_read_what_another_sends(client: Any) -> None:
    assert one(client, "native", 4) == 4 * 4 + 5 * 5


CODES = {
    0: (500, "UNKNOWN"),
    1: (500, "INTERNAL"),
    2: (404, "NOT_FOUND"),
    3: (400, "INVALID_ARGUMENT"),
    4: (503, "UNAVAILABLE"),
    5: (501, "UNIMPLEMENTED"),
    6: (400, "ALREADY_EXISTS"),
    7: (499, "CANCELLED"),
}


@pytest.mark.parametrize("model", ["hands_on", "native_hands_on"])
@pytest.mark.parametrize("code", CODES)
def test_an_error_keeps_its_code_through_the_model_that_hands_it_on(client: Any, code: int, model: str) -> None:
    with pytest.raises(InferenceServerException, match="code ") as direct:
        one(client, "codes", code)
    with pytest.raises(InferenceServerException, match="code ") as handed_on:
        one(client, model, code)

    assert handed_on.value.message() == direct.value.message()
    assert handed_on.value.status() == direct.value.status()
    assert handed_on.value.status() in (str(CODES[code][0]), f"StatusCode.{CODES[code][1]}")


WORDS = [
    "Failed for execute the inference request. Model 'nobody' is not ready.",
    "transaction policy. Please use 'decoupled=True' argument to the 'exec' or 'async_exec' calls for decoupled models",
    "expected 1 inputs but got 0 inputs for model 'codes'. Got input(s) [], but missing required input(s) ['IN']",
    "Failed for execute the inference request. Model 'codes' is not ready.",
    "unexpected inference output 'NONE' for model 'codes'",
    "the ring 'tells' -> 'tells'",
]


@pytest.mark.parametrize("number", range(len(WORDS)))
def test_what_is_wrong_with_a_call_is_said_in_the_words_that_models_look_for(client: Any, number: int) -> None:
    with pytest.raises(InferenceServerException) as told:
        one(client, "tells", number)

    assert WORDS[number] in str(told.value.message())


def test_calls_are_counted_as_requests_of_the_called_model(calling: Running) -> None:
    with calling.client() as client:
        client.naiad_module = http
        before = count(client, "square")
        one(client, "sum", 1)

        assert count(client, "square") == before + 1


def count(client: Any, model: str) -> int:
    (statistics,) = client.get_inference_statistics(model)["model_stats"]
    return int(statistics["inference_stats"]["success"]["count"])


def test_many_callers_at_once_all_get_their_answers(calling: Running) -> None:
    def ask(number: int) -> int:
        with calling.client() as client:
            client.naiad_module = http
            return one(client, "sum", number % 7)

    with ThreadPoolExecutor(16) as threads:
        answers = list(threads.map(ask, range(200)))

    assert answers == [(number % 7) ** 2 for number in range(200)]


HELD = """
import time
from pathlib import Path

import triton_python_backend_utils as pb_utils

HERE = Path(__file__).parent


class TritonPythonModel:
    def execute(self, requests):
        (HERE / "executing").touch()
        while not (HERE / "go").exists() and not requests[0].is_cancelled():
            time.sleep(0.001)
        (HERE / ("cancelled" if requests[0].is_cancelled() else "answered")).touch()
        return [pb_utils.InferenceResponse([pb_utils.Tensor("OUT", r.inputs()[0].as_numpy())]) for r in requests]
"""
ASKS_HELD = sources.HANDS_ON.replace('"codes"', '"held"').replace(
    "responses.append(pb_utils.InferenceResponse(error=infer_request.exec().error()))",
    "responses.append(infer_request.exec())",
)


@pytest.fixture
def held(models: Path) -> Path:
    """The folder of a model that answers when the test says so; the model `asks` calls it."""
    sources.write(models, "held", HELD, sources.ONE_CONFIG)
    sources.write(models, "asks", ASKS_HELD, sources.ONE_CONFIG)
    return models / "held" / "1"


def test_a_client_that_leaves_takes_the_calls_made_for_it_along(start_calling: Start, held: Path) -> None:
    running = start_calling()
    with grpc.InferenceServerClient(f"127.0.0.1:{running.grpc_port}") as client:
        given = grpc.InferInput("IN", [1], "INT32")
        given.set_data_from_numpy(np.array([1], np.int32))
        call = client.async_infer("asks", [given], lambda result, error: None)
        until((held / "executing").exists)
        call.cancel()

        until((held / "cancelled").exists)
    running.stop()


def test_a_server_that_is_told_to_stop_answers_with_all_the_calls_that_takes(start_calling: Start, held: Path) -> None:
    running = start_calling()
    answers: list[int] = []

    def ask() -> None:
        with running.client() as client:
            client.naiad_module = http
            answers.append(one(client, "asks", 7))

    asking = threading.Thread(target=ask)
    asking.start()
    until((held / "executing").exists)
    running.terminate()
    (held / "go").touch()
    asking.join(30)

    assert answers == [7]
    assert running.exit_status() == 0


def test_models_that_call_each_other_in_a_ring_are_refused_and_the_server_goes_on(
    start_calling: Start, models: Path
) -> None:
    for name, other in (("ping", "pong"), ("pong", "ping")):
        sources.write(models, name, ASKS_HELD.replace('"held"', f'"{other}"'), sources.ONE_CONFIG, count=2)
    running = start_calling()
    with running.client() as client:
        client.naiad_module = http
        for _ in range(3):
            with pytest.raises(InferenceServerException, match="would wait for ever") as told:
                one(client, "ping", 1)
            assert told.value.status() == "503"
        assert one(client, "sum", 3) == 9
    running.stop()


ASKS_ITSELF = """
from naiad_custom import INT32, Array, Server, model

@model(outputs="OUT", max_batch_size=4)
def asks_itself(IN: Array[INT32, 1], server: Server) -> Array[INT32, 1]:
    return IN if int(IN[0, 0]) < 1 else server.infer("asks_itself", IN=IN - 1)["OUT"] + 1
"""
IN_ORDER = (
    'backend: "python" dynamic_batching { preserve_ordering: true } instance_group [ { count: 3 kind: KIND_CPU } ]'
)


def test_a_model_that_keeps_the_order_of_its_answers_may_ask_itself(calling: Running) -> None:
    write_model(calling.repository, "asks_itself", ASKS_ITSELF, IN_ORDER)
    assert calling.load("asks_itself").status == 200

    body = {"inputs": [{"name": "IN", "datatype": "INT32", "shape": [1, 1], "data": [2]}]}
    answer = calling.ask("POST", "/v2/models/asks_itself/infer", body)

    assert answer.document["outputs"][0]["data"] == [2]
