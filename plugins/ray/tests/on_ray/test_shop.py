"""An application with two groups on a cluster, by the calls of unmodified clients."""

import os
import queue
import signal
import threading
import time
from collections.abc import Callable
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import pytest

pytest.importorskip("ray")

import tritonclient.grpc as grpcclient
import tritonclient.http as httpclient
from tritonclient.utils import InferenceServerException

# grpcio and Ray warn of what these tests are not about
pytestmark = [pytest.mark.ray, pytest.mark.timeout(300), pytest.mark.filterwarnings("default")]

CLIENTS = [pytest.param(httpclient, id="http"), pytest.param(grpcclient, id="grpc")]


def client_of(module: ModuleType, shop: SimpleNamespace) -> Any:
    url = shop.http if module is httpclient else shop.grpc
    return module.InferenceServerClient(url)


def tensor(module: ModuleType, name: str, value: float) -> list[Any]:
    tensors = [module.InferInput(name, [1, 1], "FP32")]
    tensors[0].set_data_from_numpy(np.array([[value]], np.float32))
    return tensors


def pids_of(name: str) -> list[int]:
    """The processes whose command line has that name, which Ray gives to its actors."""
    pids = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            if path.read_bytes().startswith(name.encode()):
                pids.append(int(path.parent.name))
        except OSError:
            continue
    return pids


def wait_until(condition: Callable[[], bool], seconds: float = 90.0) -> float:
    """The seconds until the condition holds."""
    start = time.monotonic()
    while not condition():
        assert time.monotonic() - start < seconds, "it did not happen in time"
        time.sleep(0.2)
    return time.monotonic() - start


def replicas_of(group: str) -> int:
    from ray import serve

    return int(serve.status().applications["naiad"].deployments[group].replica_states.get("RUNNING", 0))


@pytest.mark.parametrize("module", CLIENTS)
def test_health_metadata_and_models_of_both_groups_are_those_of_one_server(
    module: ModuleType, shop: SimpleNamespace
) -> None:
    client = client_of(module, shop)

    index = client.get_model_repository_index()
    metadata = client.get_model_metadata("till")

    assert client.is_server_live()
    assert client.is_server_ready()
    assert client.is_model_ready("words")
    names = [each["name"] for each in index] if isinstance(index, list) else [each.name for each in index.models]
    assert names == ["echo", "till", "twice", "words"]
    assert (metadata["name"] if isinstance(metadata, dict) else metadata.name) == "till"


@pytest.mark.parametrize("module", CLIENTS)
def test_an_ensemble_finds_its_models_in_its_own_group(module: ModuleType, shop: SimpleNamespace) -> None:
    response = client_of(module, shop).infer("twice", tensor(module, "x", 0.5))

    assert response.as_numpy("z").tolist() == [[0.5]]


@pytest.mark.parametrize("module", CLIENTS)
def test_every_sequence_stays_at_its_replica(module: ModuleType, shop: SimpleNamespace) -> None:
    client = client_of(module, shop)

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
def test_the_errors_of_models_reach_the_client(module: ModuleType, shop: SimpleNamespace) -> None:
    with pytest.raises(InferenceServerException, match="unknown model: 'nope'"):
        client_of(module, shop).infer("nope", tensor(module, "x", 0))
    with pytest.raises(InferenceServerException, match="must specify the START flag"):
        client_of(module, shop).infer("till", tensor(module, "price", 0), sequence_id=999)


def test_a_stream_serves_sequences_and_many_responses_of_several_groups(shop: SimpleNamespace) -> None:
    client = client_of(grpcclient, shop)
    answers: queue.Queue[tuple[Any, Any]] = queue.Queue()
    client.start_stream(lambda result, error: answers.put((result, error)))
    text = grpcclient.InferInput("text", [1], "BYTES")
    text.set_data_from_numpy(np.array([b"one two three"], object))

    for step in range(3):
        client.async_stream_infer(
            "till",
            tensor(grpcclient, "price", 1),
            sequence_id=7,
            sequence_start=step == 0,
            sequence_end=step == 2,
        )
    totals = [answers.get(timeout=30)[0].as_numpy("total")[0, 0] for _ in range(3)]
    client.async_stream_infer("words", [text])
    words = [answers.get(timeout=30)[0].as_numpy("word")[0] for _ in range(3)]
    client.stop_stream()

    assert totals == [1.0, 2.0, 3.0]
    assert words == [b"one", b"two", b"three"]


def test_the_statistics_are_those_of_all_replicas(shop: SimpleNamespace) -> None:
    client = client_of(httpclient, shop)

    def count() -> int:
        return int(client.get_inference_statistics("echo")["model_stats"][0]["inference_count"])

    before = count()
    for _ in range(10):
        client.infer("echo", tensor(httpclient, "x", 0))

    assert count() == before + 10
    assert len(client.get_inference_statistics()["model_stats"]) == 4


def test_a_load_and_an_unload_reach_all_replicas_and_those_that_come_later(shop: SimpleNamespace) -> None:
    client = client_of(grpcclient, shop)

    client.unload_model("echo")
    ready = [client.is_model_ready("echo") for _ in range(10)]
    (first, *_) = pids_of("ray::ServeReplica:naiad:state")
    os.kill(first, signal.SIGKILL)
    wait_until(lambda: first not in pids_of("ray::ServeReplica:naiad:state") and replicas_of("state") == 2)
    later = [client.is_model_ready("echo") for _ in range(10)]
    client.load_model("echo")

    assert ready == later == [False] * 10
    assert all(client.is_model_ready("echo") for _ in range(10))


def test_a_sequence_whose_replica_dies_ends_with_an_error_that_says_so(shop: SimpleNamespace) -> None:
    client = client_of(httpclient, shop)
    for sequence in range(200, 220):
        client.infer("till", tensor(httpclient, "price", 1), sequence_id=sequence, sequence_start=True)

    (killed, *_) = pids_of("ray::ServeReplica:naiad:state")
    os.kill(killed, signal.SIGKILL)
    wait_until(lambda: killed not in pids_of("ray::ServeReplica:naiad:state") and replicas_of("state") == 2)
    ended, going_on = [], 0
    for sequence in range(200, 220):
        try:
            response = client.infer("till", tensor(httpclient, "price", 1), sequence_id=sequence)
            going_on += response.as_numpy("total")[0, 0] == 2.0
        except InferenceServerException as error:
            ended.append(str(error))

    assert len(ended) + going_on == 20
    assert ended
    assert going_on
    assert all("of group 'state', which had its state, has ended; start the sequence again" in each for each in ended)


class Load:
    """Requests of several threads until `stop`; `failures` are their errors."""

    def __init__(self, shop: SimpleNamespace, threads: int = 4, seconds: float = 0.05) -> None:
        self.failures: list[str] = []
        self.answered = 0
        self._over = threading.Event()
        self._threads = [threading.Thread(target=self._run, args=(shop, seconds)) for _ in range(threads)]
        for thread in self._threads:
            thread.start()

    def _run(self, shop: SimpleNamespace, seconds: float) -> None:
        client = client_of(grpcclient, shop)
        while not self._over.is_set():
            try:
                client.infer("echo", tensor(grpcclient, "x", seconds))
                self.answered += 1
            except InferenceServerException as error:
                self.failures.append(str(error))

    def stop(self) -> None:
        self._over.set()
        for thread in self._threads:
            thread.join()


def test_a_replica_that_is_killed_under_load_fails_no_more_than_the_requests_it_had(shop: SimpleNamespace) -> None:
    load = Load(shop)
    wait_until(lambda: load.answered > 20)

    (killed, *_) = pids_of("ray::ServeReplica:naiad:state")
    os.kill(killed, signal.SIGKILL)
    seconds = wait_until(lambda: killed not in pids_of("ray::ServeReplica:naiad:state") and replicas_of("state") == 2)
    before = load.answered
    wait_until(lambda: load.answered > before + 20)
    load.stop()

    print(
        f"\nkill -9 of a replica: {len(load.failures)} of {load.answered} requests failed; replaced in {seconds:.1f} s"
    )
    assert len(load.failures) <= 4
    assert all("has ended; whether it was executed is unknown" in each for each in load.failures)


def test_a_changed_repository_replaces_the_replicas_without_a_failed_request(shop: SimpleNamespace) -> None:
    client = client_of(httpclient, shop)
    old = set(pids_of("ray::ServeReplica:naiad:state"))
    source = shop.folder / "models" / "echo" / "1" / "model.py"
    load = Load(shop, threads=2)
    wait_until(lambda: load.answered > 10)

    source.write_text(source.read_text().replace("return x", "return x + 1"))
    shop.bring_up()
    wait_until(lambda: not old & set(pids_of("ray::ServeReplica:naiad:state")))
    load.stop()

    print(f"\nrolling update: {len(load.failures)} of {load.answered} requests failed")
    assert load.failures == []
    assert client.infer("echo", tensor(httpclient, "x", 0)).as_numpy("y").tolist() == [[1.0]]
