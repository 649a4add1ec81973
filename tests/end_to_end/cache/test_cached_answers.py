"""A whole server with a response cache: what is answered from it, over every protocol, and what is counted."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import tritonclient.grpc as rpc
import tritonclient.http as web
from tritonclient.utils import shared_memory as shm

from ..running import Running, until
from .conftest import metric

FLOATS = np.arange(4, dtype=np.float32)


def input_of(library: Any, array: np.ndarray, datatype: str = "FP32", **how: Any) -> Any:
    tensor = library.InferInput("x", list(array.shape), datatype)
    tensor.set_data_from_numpy(array, **how)
    return tensor


def times(running: Running, model: str = "numbers", array: np.ndarray = FLOATS, **how: Any) -> int:
    """How often the model had been executed when it made the answer."""
    datatype = "BYTES" if array.dtype.hasobject else "FP32"
    with running.client() as client:
        answer = client.infer(model, [input_of(web, array, datatype)], **how)
    return int(answer.as_numpy("times")[0])


def test_an_equal_request_is_answered_from_the_cache_whatever_it_is_sent_as(cached: Running) -> None:
    with cached.client() as client, rpc.InferenceServerClient(f"127.0.0.1:{cached.grpc_port}") as rpc_client:
        binary = client.infer("numbers", [input_of(web, FLOATS)], request_id="binary")
        text = client.infer("numbers", [input_of(web, FLOATS, binary_data=False)], request_id="text")
        called = rpc_client.infer("numbers", [input_of(rpc, FLOATS)], request_id="rpc")

    assert [int(answer.as_numpy("times")[0]) for answer in (binary, text, called)] == [1, 1, 1]
    assert [answer.get_response()["id"] for answer in (binary, text)] == ["binary", "text"]
    assert called.get_response().id == "rpc"
    for answer in (binary, text, called):
        np.testing.assert_array_equal(answer.as_numpy("y"), FLOATS)


def test_classes_are_counted_out_of_one_answer_for_everybody_who_asks(cached: Running) -> None:
    times = web.InferRequestedOutput("times")

    def ask(client: Any, *how: dict[str, int]) -> list[Any]:
        outputs = [[web.InferRequestedOutput("y", **each), times] for each in how]
        return [client.infer("numbers", [input_of(web, FLOATS)], outputs=each) for each in outputs]

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
