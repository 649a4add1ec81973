"""Every method of the four clients of Triton's library, against a whole server, over either transport of gRPC."""

import asyncio
import inspect
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import closing
from functools import partial
from importlib import import_module
from queue import SimpleQueue
from types import ModuleType
from typing import Any
from uuid import uuid4

import numpy as np
import pytest
from tritonclient.utils import InferenceServerException
from tritonclient.utils import shared_memory as client_memory

import naiad_grpc
import naiad_http
import naiad_shared_memory
import naiad_tracing
from naiad_testing import serve
from naiad_testing.backends import FakeBackend

CLIENTS = ["tritonclient.http", "tritonclient.http.aio", "tritonclient.grpc", "tritonclient.grpc.aio"]
LOCAL_METHODS = {
    "close",
    "plugin",
    "register_plugin",
    "unregister_plugin",
    "generate_request_body",
    "parse_response_body",
}
"""Methods that send nothing."""
NO_GPU = {"register_cuda_shared_memory"}
"""Methods whose requests are refused on a machine without a GPU."""
BYTES = 64


@pytest.fixture(scope="module", params=["naiad", "grpcio"])
def ports(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, int]]:
    """The ports of a server, by protocol."""
    repository = tmp_path_factory.mktemp("models")
    backend = FakeBackend()
    backend.write(repository, "m")
    options = {f"{name}-port": 0 for name in ("http", "grpc")} | {
        "http-address": "127.0.0.1",
        "grpc-address": "127.0.0.1",
        "grpc-transport": request.param,
        "allow-client-shm": True,
    }
    plugins = [naiad_http, naiad_grpc, naiad_shared_memory, naiad_tracing, backend]
    with serve(repository, plugins=plugins, options=options) as client:
        server: Any = client.server
        frontends = server.plugins.frontends()
        yield {"http": frontends["http"].port, "grpc": int(frontends["grpc"].target.rpartition(":")[2])}


@pytest.fixture
def region() -> Iterator[str]:
    """The key of a system shared memory region."""
    key = f"/naiad-calls-{uuid4().hex}"
    handle = client_memory.create_shared_memory_region("calls", key, BYTES)
    yield key
    client_memory.destroy_shared_memory_region(handle)


def tensor(library: ModuleType) -> Any:
    array = np.arange(4, dtype=np.float32)
    sent = library.InferInput("INPUT", [4], "FP32")
    sent.set_data_from_numpy(array)
    return sent


def calls(library: ModuleType, key: str) -> dict[str, Callable[[Any], Any]]:
    """A call of every method that sends one request, in an order in which they succeed."""
    return {
        "is_server_live": lambda client: client.is_server_live(),
        "is_server_ready": lambda client: client.is_server_ready(),
        "is_model_ready": lambda client: client.is_model_ready("m"),
        "get_server_metadata": lambda client: client.get_server_metadata(),
        "get_model_metadata": lambda client: client.get_model_metadata("m"),
        "get_model_config": lambda client: client.get_model_config("m"),
        "get_model_repository_index": lambda client: client.get_model_repository_index(),
        "load_model": lambda client: client.load_model("m"),
        "infer": lambda client: client.infer("m", [tensor(library)]),
        "get_inference_statistics": lambda client: client.get_inference_statistics("m"),
        "get_trace_settings": lambda client: client.get_trace_settings("m"),
        "update_trace_settings": lambda client: client.update_trace_settings(settings={"trace_rate": "500"}),
        "get_log_settings": lambda client: client.get_log_settings(),
        "update_log_settings": lambda client: client.update_log_settings({"log_verbose_level": 0}),
        "register_system_shared_memory": lambda client: client.register_system_shared_memory("r", key, BYTES),
        "get_system_shared_memory_status": lambda client: client.get_system_shared_memory_status(),
        "unregister_system_shared_memory": lambda client: client.unregister_system_shared_memory("r"),
        "register_cuda_shared_memory": lambda client: client.register_cuda_shared_memory("c", b"x" * 64, 0, BYTES),
        "get_cuda_shared_memory_status": lambda client: client.get_cuda_shared_memory_status(),
        "unregister_cuda_shared_memory": lambda client: client.unregister_cuda_shared_memory("c"),
    }


def blocking_calls(library: ModuleType) -> dict[str, Callable[[Any], Any]]:
    """The calls that only clients that block have."""
    if library.__name__ == "tritonclient.http":
        return {"async_infer": lambda client: client.async_infer("m", [tensor(library)]).get_result()}
    return {"async_infer": lambda client: infer_later(client, library), **dict.fromkeys(STREAM, lambda _: None)}


STREAM = ("start_stream", "async_stream_infer", "stop_stream")


def infer_later(client: Any, library: ModuleType) -> Any:
    results: SimpleQueue[tuple[Any, Any]] = SimpleQueue()
    client.async_infer("m", [tensor(library)], lambda result, error: results.put((result, error)))
    result, error = results.get(timeout=20)
    assert error is None
    return result


def methods(client: Any) -> set[str]:
    """The public methods of a client that send something."""
    names = {name for name, _ in inspect.getmembers(type(client), callable) if not name.startswith("_")}
    return names - LOCAL_METHODS


def attempt(name: str, call: Callable[[], Any]) -> Any:
    try:
        return call()
    except InferenceServerException:
        assert name in NO_GPU
        return None


def output(result: Any) -> list[float]:
    return [float(value) for value in result.as_numpy("OUTPUT")]


@pytest.mark.parametrize("name", ["tritonclient.http", "tritonclient.grpc"])
def test_every_method_of_a_client_that_blocks_is_answered(ports: dict[str, int], region: str, name: str) -> None:
    library = import_module(name)

    with closing(library.InferenceServerClient(f"127.0.0.1:{ports[name.rpartition('.')[2]]}")) as client:
        table = {**calls(library, region), **blocking_calls(library)}
        results = {method: attempt(method, partial(call, client)) for method, call in table.items()}

        assert methods(client) - set(table) == {"unload_model"}
        assert all(results[method] is True for method in results if method.startswith("is_"))
        assert output(results["infer"]) == output(results["async_infer"]) == [0, 1, 2, 3]


def test_a_stream_of_the_client_that_blocks_is_answered(ports: dict[str, int]) -> None:
    library = import_module("tritonclient.grpc")
    results: SimpleQueue[tuple[Any, Any]] = SimpleQueue()

    with closing(library.InferenceServerClient(f"127.0.0.1:{ports['grpc']}")) as client:
        client.start_stream(lambda result, error: results.put((result, error)))
        client.async_stream_infer("m", [tensor(library)])
        result, error = results.get(timeout=20)
        client.stop_stream()

    assert error is None
    assert output(result) == [0, 1, 2, 3]


@pytest.mark.parametrize("name", ["tritonclient.http.aio", "tritonclient.grpc.aio"])
def test_every_method_of_a_client_for_asyncio_is_answered(ports: dict[str, int], region: str, name: str) -> None:
    library = import_module(name)

    async def main() -> tuple[set[str], dict[str, Any], list[list[float]]]:
        client = library.InferenceServerClient(f"127.0.0.1:{ports[name.split('.')[1]]}")
        results, streamed = {}, []
        for method, call in calls(library, region).items():
            try:
                results[method] = await call(client)
            except InferenceServerException:
                assert method in NO_GPU
        if hasattr(client, "stream_infer"):
            async for result, error in client.stream_infer(requests(library)):
                assert error is None
                streamed.append(output(result))
        await client.close()
        return methods(client), results, streamed

    names, results, streamed = asyncio.run(main())

    assert names - set(calls(library, region)) - {"stream_infer"} == {"unload_model"}
    assert all(results[method] is True for method in results if method.startswith("is_"))
    assert output(results["infer"]) == [0, 1, 2, 3]
    assert streamed == ([[0, 1, 2, 3]] * 2 if "grpc" in name else [])


async def requests(library: ModuleType) -> AsyncIterator[dict[str, Any]]:
    for _ in range(2):
        yield {"model_name": "m", "inputs": [tensor(library)]}


@pytest.mark.parametrize("name", CLIENTS)
def test_a_model_is_unloaded_and_loaded_again(ports: dict[str, int], name: str) -> None:
    library = import_module(name)
    client_kind = library.InferenceServerClient

    async def main() -> list[bool]:
        client = client_kind(f"127.0.0.1:{ports[name.split('.')[1]]}")
        states = []
        for call in (client.unload_model, client.load_model):
            await call("m")
            states.append(await client.is_model_ready("m"))
        await client.close()
        return states

    if name.endswith(".aio"):
        states = asyncio.run(main())
    else:
        with closing(client_kind(f"127.0.0.1:{ports[name.split('.')[1]]}")) as client:
            states = []
            for call in (client.unload_model, client.load_model):
                call("m")
                states.append(client.is_model_ready("m"))

    assert states == [False, True]
