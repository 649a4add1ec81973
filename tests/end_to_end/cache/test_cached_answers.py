"""A whole server with a response cache: what is answered from it, over every protocol, and what is counted."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tritonclient.grpc as rpc
import tritonclient.http as web
from tritonclient.utils import shared_memory as shm

from ..running import Running, until
from .conftest import CACHED, metric, write_counting

FLOATS = np.arange(4, dtype=np.float32)


def given(library: Any, array: np.ndarray, datatype: str = "FP32", **how: Any) -> Any:
    tensor = library.InferInput("x", list(array.shape), datatype)
    tensor.set_data_from_numpy(array, **how)
    return tensor


def times(running: Running, model: str = "numbers", array: np.ndarray = FLOATS, **how: Any) -> int:
    """How often the model had been executed when it made the answer."""
    datatype = "BYTES" if array.dtype.hasobject else "FP32"
    with running.client() as client:
        answer = client.infer(model, [given(web, array, datatype)], **how)
    return int(answer.as_numpy("times")[0])


def test_an_equal_request_is_answered_from_the_cache_whatever_it_is_sent_as(cached: Running) -> None:
    with cached.client() as client, rpc.InferenceServerClient(f"127.0.0.1:{cached.grpc_port}") as rpc_client:
        binary = client.infer("numbers", [given(web, FLOATS)], request_id="binary")
        text = client.infer("numbers", [given(web, FLOATS, binary_data=False)], request_id="text")
        called = rpc_client.infer("numbers", [given(rpc, FLOATS)], request_id="rpc")

    assert [int(answer.as_numpy("times")[0]) for answer in (binary, text, called)] == [1, 1, 1]
    assert [answer.get_response()["id"] for answer in (binary, text)] == ["binary", "text"]
    assert called.get_response().id == "rpc"
    for answer in (binary, text, called):
        np.testing.assert_array_equal(answer.as_numpy("y"), FLOATS)


def test_classes_are_counted_out_of_one_answer_for_everybody_who_asks(cached: Running) -> None:
    times = web.InferRequestedOutput("times")

    def ask(client: Any, *how: dict[str, int]) -> list[Any]:
        outputs = [[web.InferRequestedOutput("y", **each), times] for each in how]
        return [client.infer("numbers", [given(web, FLOATS)], outputs=each) for each in outputs]

    with cached.client() as client:
        answers = ask(client, {"class_count": 2}, {}, {"class_count": 1})

    first, plain, one = (answer.as_numpy("y").tolist() for answer in answers)
    assert (first, one) == ([b"3.000000:3", b"2.000000:2"], [b"3.000000:3"])
    assert plain == FLOATS.tolist()
    assert [int(answer.as_numpy("times")[0]) for answer in answers] == [1, 1, 1]


def test_calls_of_python_models_are_answered_from_the_cache(cached: Running) -> None:
    times(cached, "calling")

    assert times(cached, "calling") == 1
    assert cached.counted("numbers", "cache_hit") == 1


def test_requests_that_differ_in_anything_are_executed(cached: Running) -> None:
    pictures = [np.zeros(shape, np.float32) for shape in ((2, 3), (3, 2), (1, 6), (6, 1))]
    texts = [np.array(each, dtype=object) for each in ([b"ab", b""], [b"a", b"b"], [b"", b"ab"], [b"ab"])]

    assert [times(cached, "pictures", each) for each in pictures] == [1, 2, 3, 4]
    assert [times(cached, "texts", each) for each in texts] == [1, 2, 3, 4]
    assert [times(cached, "texts", each) for each in texts] == [1, 2, 3, 4]
    assert times(cached, parameters={"seed": 1}) == 1
    assert times(cached, parameters={"seed": 2}) == 2
    assert times(cached, outputs=[web.InferRequestedOutput("times")]) == 3
    assert times(cached, outputs=[web.InferRequestedOutput("times"), web.InferRequestedOutput("y")]) == 4


def test_a_model_that_does_not_ask_for_the_cache_is_executed_every_time(cached: Running) -> None:
    assert [times(cached, "plain") for _ in range(3)] == [1, 2, 3]
    assert cached.counted("plain", "cache_miss") == 0


def test_hits_and_misses_are_counted_in_statistics_and_metrics(cached: Running) -> None:
    for _ in range(5):
        times(cached)
    statistics = cached.statistics("numbers")
    counts = {name: each["count"] for name, each in statistics["inference_stats"].items()}

    assert (counts["success"], counts["queue"], counts["cache_hit"], counts["cache_miss"]) == (5, 5, 4, 1)
    assert (counts["compute_infer"], statistics["inference_count"], statistics["execution_count"]) == (1, 1, 1)
    assert metric(cached, "nv_cache_num_hits_per_model") == 4
    assert metric(cached, "nv_cache_num_misses_per_model") == 1
    assert metric(cached, "nv_inference_request_success") == 5
    assert metric(cached, "nv_inference_count") == 1
    assert metric(cached, "naiad_cache_entries") == 1
    assert metric(cached, "naiad_cache_capacity_bytes") == 1_000_000
    hits_ns = statistics["inference_stats"]["cache_hit"]["ns"]
    assert metric(cached, "nv_cache_hit_duration_per_model") == hits_ns // 1000


def test_a_full_cache_drops_what_was_asked_for_longest_ago(cached: Running) -> None:
    large = [np.full(10_000, number, np.float32) for number in range(40)]
    first = [times(cached, array=each) for each in large]

    again = [times(cached, array=each) for each in (large[-1], large[0])]

    assert first == list(range(1, 41))
    assert again == [40, 41]
    assert metric(cached, "naiad_cache_evictions_total") > 0
    assert metric(cached, "naiad_cache_bytes") <= 1_000_000


def test_large_answers_are_kept_and_those_that_are_too_large_are_not(cached: Running) -> None:
    fits, does_not = np.zeros(100_000, np.float32), np.zeros(300_000, np.float32)

    counted = [times(cached, array=each) for each in (fits, fits, fits, does_not, does_not)]

    assert counted[0] == 1
    assert counted[2] <= 2
    assert counted[4] == counted[3] + 1
    assert "is not kept: cache 'local' takes up to 1000000" in cached.log


def test_answers_from_the_cache_are_written_to_shared_memory(
    cached: Running, make_region: Callable[[int], Any]
) -> None:
    source, target = make_region(FLOATS.nbytes), make_region(FLOATS.nbytes)
    shm.set_shared_memory_region(source, [FLOATS])
    tensor, output = web.InferInput("x", [4], "FP32"), web.InferRequestedOutput("y")
    tensor.set_shared_memory("source", FLOATS.nbytes)
    output.set_shared_memory("target", FLOATS.nbytes)

    with cached.client() as client:
        client.register_system_shared_memory("source", f"/{shm_name(source)}", FLOATS.nbytes)
        client.register_system_shared_memory("target", f"/{shm_name(target)}", FLOATS.nbytes)
        written = []
        for _ in range(2):
            shm.set_shared_memory_region(target, [np.zeros_like(FLOATS)])
            client.infer("numbers", [tensor], outputs=[output])
            written.append(shm.get_contents_as_numpy(target, np.float32, [4]).tolist())
        client.unregister_system_shared_memory()

    assert written == [FLOATS.tolist()] * 2
    assert cached.counted("numbers", "cache_hit") == 1


@pytest.mark.parametrize("count", [20_000, 100_000])
@pytest.mark.parametrize("library", [web, rpc], ids=["http", "grpc"])
def test_large_tensors_in_shared_memory_are_looked_up_as_all_others(
    cached: Running, make_region: Callable[[int], Any], library: Any, count: int
) -> None:
    values = np.arange(count, dtype=np.float32)
    source, target = make_region(values.nbytes), make_region(values.nbytes)
    tensor, output = library.InferInput("x", [count], "FP32"), library.InferRequestedOutput("y")
    tensor.set_shared_memory("source", values.nbytes)
    output.set_shared_memory("target", values.nbytes)
    address = cached.url if library is web else f"127.0.0.1:{cached.grpc_port}"

    with library.InferenceServerClient(address) as client:
        client.register_system_shared_memory("source", f"/{shm_name(source)}", values.nbytes)
        client.register_system_shared_memory("target", f"/{shm_name(target)}", values.nbytes)
        right = []
        for factor in (1, 1, 2, 2):
            shm.set_shared_memory_region(source, [values * factor])
            shm.set_shared_memory_region(target, [np.zeros_like(values)])
            client.infer("numbers", [tensor], outputs=[output])
            right.append(np.array_equal(shm.get_contents_as_numpy(target, np.float32, [count]), values * factor))
            until(lambda: metric(cached, "naiad_cache_insertions_total") == 1 + (factor == 2))  # noqa: B023
        client.unregister_system_shared_memory()

    assert right == [True] * 4
    assert (cached.counted("numbers", "cache_hit"), cached.counted("numbers", "cache_miss")) == (2, 2)


def shm_name(region: Any) -> str:
    """The name of a region that the client library made."""
    return str(region._shm_key).lstrip("/")


def test_many_clients_at_once_get_right_answers(cached: Running) -> None:
    def ask(number: int) -> bool:
        array = np.full(3, number % 10, np.float32)
        with cached.client() as client:
            answer = client.infer("numbers", [given(web, array)], request_id=str(number))
        return answer.get_response()["id"] == str(number) and answer.as_numpy("y").tolist() == array.tolist()

    with ThreadPoolExecutor(8) as pool:
        right = list(pool.map(ask, range(400)))

    assert all(right)
    assert cached.counted("numbers", "cache_hit") >= 300


def test_a_model_that_is_loaded_anew_answers_anew(counting: Path, serve: Callable[..., Running]) -> None:
    running = serve("--cache-config=local,size=100000", "--model-control-mode=explicit", "--load-model=numbers")
    assert running.port
    before = [times(running), times(running)]
    write_counting(counting, "numbers", more=CACHED + " # changed")

    assert running.load("numbers").status == 200
    after = [times(running), times(running)]

    assert (before, after) == ([1, 1], [1, 1])
    assert running.statistics("numbers")["execution_count"] == 1
    running.stop()


def test_servers_that_share_a_redis_find_each_others_answers(
    counting: Path, serve: Callable[..., Running], redis_port: int
) -> None:
    words = ("--cache-config", f"redis,host=127.0.0.1,port={redis_port}", "--cache-config", "redis,timeout=5")
    one, other = (serve(*words, TRITONCACHE_REDIS_PASSWORD="sesame") for _ in range(2))
    assert one.port
    assert other.port
    times(one)

    found = 0
    while not found:
        times(other)
        found = other.counted("numbers", "cache_hit")

    assert times(other) == 1
    one.stop()
    other.stop()


def test_a_server_whose_redis_is_away_serves_all_the_same(counting: Path, serve: Callable[..., Running]) -> None:
    running = serve("--cache-config", "redis,host=127.0.0.1,port=1")
    assert running.port

    assert [times(running) for _ in range(3)] == [1, 2, 3]
    assert running.log.count("Redis at 127.0.0.1:1 fails, and requests go to their models") == 1
    running.stop()
