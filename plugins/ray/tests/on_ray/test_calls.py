"""The public calls of unmodified clients, answered by groups behind a front desk."""

import inspect
import json
import queue
from collections.abc import Callable
from types import ModuleType
from typing import Any
from urllib.request import Request, urlopen

import pytest

pytest.importorskip("ray")

import tritonclient.grpc as grpcclient
import tritonclient.http as httpclient
from tritonclient.utils import InferenceServerException

from .applications import Application, tensor, text

# grpcio and Ray warn of what these tests are not about
pytestmark = [pytest.mark.ray, pytest.mark.timeout(600), pytest.mark.filterwarnings("default")]

CLIENTS = [pytest.param(httpclient, id="http"), pytest.param(grpcclient, id="grpc")]
SHARED_MEMORY = {f"{verb}_{kind}_shared_memory" for verb in ("register", "unregister") for kind in ("system", "cuda")}
"""The calls that are refused: no client shares memory with a replica that it does not choose."""
LOCAL = {"close", "plugin", "register_plugin", "unregister_plugin", "generate_request_body", "parse_response_body"}
"""Methods that send nothing."""


def calls(module: ModuleType, client: Any) -> dict[str, Callable[[], Any]]:
    """A call of every public method, in an order in which they succeed."""
    return {
        "is_server_live": client.is_server_live,
        "is_server_ready": client.is_server_ready,
        "is_model_ready": lambda: client.is_model_ready("words"),
        "get_server_metadata": client.get_server_metadata,
        "get_model_metadata": lambda: client.get_model_metadata("echo"),
        "get_model_config": lambda: client.get_model_config("echo"),
        "get_model_repository_index": client.get_model_repository_index,
        "unload_model": lambda: client.unload_model("words"),
        "load_model": lambda: client.load_model("words"),
        "infer": lambda: client.infer("echo", tensor(module, "x", 0)),
        "async_infer": lambda: infer_later(module, client),
        "start_stream": lambda: client.start_stream(lambda result, error: None),
        "async_stream_infer": lambda: client.async_stream_infer("echo", tensor(module, "x", 0)),
        "stop_stream": lambda: client.stop_stream(),
        "get_inference_statistics": lambda: client.get_inference_statistics("echo"),
        "get_trace_settings": lambda: client.get_trace_settings("echo"),
        "update_trace_settings": lambda: client.update_trace_settings(settings={"trace_rate": "500"}),
        "get_log_settings": client.get_log_settings,
        "update_log_settings": lambda: client.update_log_settings({"log_verbose_level": 0}),
        "register_system_shared_memory": lambda: client.register_system_shared_memory("r", "/r", 64),
        "get_system_shared_memory_status": client.get_system_shared_memory_status,
        "unregister_system_shared_memory": client.unregister_system_shared_memory,
        "register_cuda_shared_memory": lambda: client.register_cuda_shared_memory("c", b"x" * 64, 0, 64),
        "get_cuda_shared_memory_status": client.get_cuda_shared_memory_status,
        "unregister_cuda_shared_memory": client.unregister_cuda_shared_memory,
    }


def infer_later(module: ModuleType, client: Any) -> Any:
    if module is httpclient:
        return client.async_infer("echo", tensor(module, "x", 0)).get_result()
    results: queue.Queue[tuple[Any, Any]] = queue.Queue()
    client.async_infer("echo", tensor(module, "x", 0), lambda result, error: results.put((result, error)))
    result, error = results.get(timeout=30)
    assert error is None
    return result


def check_every_call(module: ModuleType, application: Application) -> None:
    client = application.client(module)
    methods = {name for name, _ in inspect.getmembers(type(client), callable) if not name.startswith("_")} - LOCAL

    answers, refused = {}, {}
    for name, call in calls(module, client).items():
        if name in methods:
            try:
                answers[name] = call()
            except InferenceServerException as error:
                refused[name] = str(error)

    assert {*answers, *refused} == methods
    assert {*refused} <= SHARED_MEMORY, refused
    assert all(answers[name] is True for name in answers if name.startswith("is_"))
    assert answers["infer"].as_numpy("y").tolist() == answers["async_infer"].as_numpy("y").tolist() == [[0.0]]


@pytest.mark.parametrize("module", CLIENTS)
def test_every_method_of_a_client_is_answered_by_groups(module: ModuleType, shop: Application) -> None:
    check_every_call(module, shop)


@pytest.mark.parametrize("module", CLIENTS)
def test_the_models_of_all_groups_are_those_of_one_server(module: ModuleType, shop: Application) -> None:
    client = shop.client(module)

    index = client.get_model_repository_index()
    metadata = client.get_model_metadata("till")

    names = [each["name"] for each in index] if isinstance(index, list) else [each.name for each in index.models]
    assert names == ["echo", "till", "twice", "words"]
    assert (metadata["name"] if isinstance(metadata, dict) else metadata.name) == "till"


@pytest.mark.parametrize("module", CLIENTS)
def test_an_ensemble_finds_its_models_in_its_own_group(module: ModuleType, shop: Application) -> None:
    response = shop.client(module).infer("twice", tensor(module, "x", 0.1))

    assert response.as_numpy("z")[0, 0] == pytest.approx(0.1)


@pytest.mark.parametrize("module", CLIENTS)
def test_every_sequence_stays_at_its_replica(module: ModuleType, shop: Application) -> None:
    client = shop.client(module)

    totals = []
    for sequence in range(100, 110):
        for step in range(3):
            response = client.infer(
                "till",
                tensor(module, "price", step + 1),
                sequence_id=sequence,
                sequence_start=step == 0,
                sequence_end=step == 2,
            )
        totals.append(response.as_numpy("total")[0, 0])

    assert totals == [6.0] * 10


@pytest.mark.parametrize("module", CLIENTS)
def test_the_errors_of_models_reach_the_client(module: ModuleType, shop: Application) -> None:
    with pytest.raises(InferenceServerException, match="unknown model: 'nope'"):
        shop.client(module).infer("nope", tensor(module, "x", 0))
    with pytest.raises(InferenceServerException, match="the START flag"):
        shop.client(module).infer("till", tensor(module, "price", 0), sequence_id=999)


def test_a_stream_serves_sequences_and_many_responses_of_several_groups(shop: Application) -> None:
    client = shop.client(grpcclient)
    answers: queue.Queue[tuple[Any, Any]] = queue.Queue()
    client.start_stream(lambda result, error: answers.put((result, error)))

    for step in range(3):
        client.async_stream_infer(
            "till",
            tensor(grpcclient, "price", 1),
            sequence_id=7,
            sequence_start=step == 0,
            sequence_end=step == 2,
        )
    totals = [answers.get(timeout=30)[0].as_numpy("total")[0, 0] for _ in range(3)]
    client.async_stream_infer("words", text(grpcclient, b"one two three"))
    words = [answers.get(timeout=30)[0].as_numpy("word")[0] for _ in range(3)]
    client.stop_stream()

    assert totals == [1.0, 2.0, 3.0]
    assert words == [b"one", b"two", b"three"]


def test_a_stream_over_http_comes_from_the_replica_of_its_group(shop: Application) -> None:
    body = json.dumps({"text": "one two three"}).encode()

    with urlopen(Request(f"http://{shop.http}/v2/models/words/generate_stream", body), timeout=30) as answer:
        events = [json.loads(line.removeprefix(b"data: ")) for line in answer if line.startswith(b"data: ")]

    assert [event["word"] for event in events] == ["one", "two", "three"]


def test_the_statistics_are_those_of_all_replicas(shop: Application) -> None:
    client = shop.client(httpclient)

    def count() -> int:
        return int(client.get_inference_statistics("echo")["model_stats"][0]["inference_count"])

    before = count()
    for _ in range(10):
        client.infer("echo", tensor(httpclient, "x", 0))

    assert count() == before + 10
    assert len(client.get_inference_statistics()["model_stats"]) == 4


def test_a_group_takes_its_part_of_a_gpu(shop: Application) -> None:
    import ray

    assert (ray.cluster_resources()["GPU"], ray.available_resources()["GPU"]) == (1.0, 0.5)


@pytest.mark.parametrize("module", CLIENTS)
def test_a_changed_setting_is_that_of_every_replica(module: ModuleType, shop: Application) -> None:
    client = shop.client(module)

    def levels() -> set[int]:
        """Those that ten replicas answer, each chosen by chance."""
        answers = [client.get_log_settings() for _ in range(10)]
        return {
            each["log_verbose_level"] if isinstance(each, dict) else each.settings["log_verbose_level"].uint32_param
            for each in answers
        }

    client.update_log_settings({"log_verbose_level": 1})
    changed = levels()
    client.update_log_settings({"log_verbose_level": 0})

    assert (changed, levels()) == ({1}, {0})
