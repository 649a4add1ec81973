"""Every call of every client with every parameter that it has, to a server that answers no client without a secret."""

import inspect
import json
import shutil
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import ExitStack
from copy import copy
from http.client import HTTPConnection
from pathlib import Path
from typing import Any
from uuid import uuid4

import numpy as np
import pytest
from tritonclient.utils import InferenceServerException
from tritonclient.utils import shared_memory as shm

from .. import models
from ..running import PATIENCE, Running
from ..serving import making_clients, serving_sources
from . import sources
from .driving import MODULES, Driven
from .gathering import Gathered

_APIS = "health,metadata,inference,shared-memory,model-config,model-repository,statistics,trace,logging"
_OPTIONS = (
    "--allow-uploaded-code",
    "--grpc-address=127.0.0.1",
    "--grpc-port=0",
    "--metrics-port=0",
    "--dashboard-port=0",
    "--model-control-mode=explicit",
    "--load-model=whole",
    "--allow-client-shm=true",
    "--http-header-forward-pattern=^x-tenant$",
    "--grpc-header-forward-pattern=^x-tenant$",
    f"--http-restricted-api={_APIS}:secret=open",
    f"--grpc-restricted-protocol={_APIS}:secret=open",
)
SECRET = {"secret": "open", "triton-grpc-protocol-secret": "open"}
COMMON = {
    "headers": {**SECRET, "x-tenant": "north"},
    "query_params": {"who": "north & south", "which": [1, 2]},
    "client_timeout": PATIENCE,
    "stream_timeout": PATIENCE,
    "request_compression_algorithm": "gzip",
    "response_compression_algorithm": "deflate",
    "compression_algorithm": "gzip",
    "as_json": True,
}
"""What many calls can be given."""

INFERRING = {
    "infer",
    "async_infer",
    "async_stream_infer",
    "stream_infer",
    "start_stream",
    "stop_stream",
    "generate_request_body",
    "parse_response_body",
}
OF_THE_CLIENT = {"close", "plugin", "register_plugin", "unregister_plugin"}


@pytest.fixture(scope="module")
def restricted(written: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    """A server whose every call needs the secret."""
    folder = tmp_path_factory.mktemp("restricted")
    shutil.copytree(written, folder / "models")
    with serving_sources(folder, sources.write_all, *_OPTIONS) as running:
        yield running


@pytest.fixture
def connect(restricted: Running) -> Iterator[Callable[[str], Driven]]:
    """Make clients of a kind of that server."""
    with making_clients(restricted) as make:
        yield make


@pytest.fixture
def key() -> Iterator[str]:
    """A segment of shared memory."""
    name = f"/naiad_all_{uuid4().hex}"
    with ExitStack() as stack:
        stack.callback(shm.destroy_shared_memory_region, shm.create_shared_memory_region(name, name, 64))
        yield name


def calls(key: str) -> list[tuple[str, dict[str, Any]]]:
    """Every call but those that infer, in an order in which all succeed, with what is their own to be given."""
    whole = {"model_name": "whole", "model_version": "1"}
    config = json.dumps({"backend": "python"})
    region = {"name": "mine", "key": key, "byte_size": 32, "offset": 32}
    return [
        ("is_server_live", {}),
        ("is_server_ready", {}),
        ("is_model_ready", whole),
        ("get_server_metadata", {}),
        ("get_model_metadata", whole),
        ("get_model_config", whole),
        ("get_model_repository_index", {}),
        (
            "load_model",
            {"model_name": "given", "config": config, "files": {"file:1/model.py": models.ECHO.encode()}},
        ),
        ("unload_model", {"model_name": "given", "unload_dependents": True}),
        ("get_inference_statistics", whole),
        ("update_trace_settings", {"model_name": "whole", "settings": {"trace_rate": "7"}}),
        ("get_trace_settings", {"model_name": "whole"}),
        ("update_log_settings", {"settings": {"log_info": True}}),
        ("get_log_settings", {}),
        ("register_system_shared_memory", region),
        ("get_system_shared_memory_status", {"region_name": "mine"}),
        ("unregister_system_shared_memory", {"name": "mine"}),
        ("get_cuda_shared_memory_status", {"region_name": ""}),
        ("unregister_cuda_shared_memory", {"name": "mine"}),
        ("register_cuda_shared_memory", {"name": "mine", "raw_handle": b"x" * 64, "device_id": 0, "byte_size": 64}),
    ]


def saying_all(client: Driven) -> dict[str, Any]:
    """All that a request can say; the model `whole` repeats it."""
    return {
        "model_name": "whole",
        "model_version": "1",
        "inputs": [client.tensor("x", np.ones(1, np.float32))],
        "outputs": [client.output("REPORT")],
        "request_id": "r",
        "sequence_id": 7,
        "sequence_start": True,
        "sequence_end": True,
        "priority": 1,
        "timeout": 5_000_000,
        "parameters": {"own": "a"},
    }


def repeated(result: Any, headers: bool = True) -> bool:
    """Whether the model received all parameters, and the request only this output."""
    report = json.loads(result.as_numpy("REPORT")[0])
    return result.as_numpy("y") is None and report == {
        "request_id": "r",
        "sequence_id": 7,
        "flags": 3,
        "timeout": 5_000_000,
        "outputs": ["REPORT"],
        "parameters": {"own": "a"} | ({"x-tenant": "north"} if headers else {}),
    }


def completely(client: Driven, call: str, own: dict[str, Any]) -> dict[str, Any]:
    """All parameters of a call: its own, and the common ones that it has. Fails where one is missing."""
    names = set(inspect.signature(getattr(client.itself, call)).parameters)
    arguments = own | {name: copy(value) for name, value in COMMON.items() if name in names}  # clients add headers
    assert set(arguments) == names, call
    return {name: value for name, value in arguments.items() if name != "as_json"}


@pytest.mark.parametrize("kind", MODULES)
def test_no_call_is_missing(kind: str) -> None:
    public = {name for name in vars(MODULES[kind].InferenceServerClient) if not name.startswith("_")}

    assert public - INFERRING - OF_THE_CLIENT == {call for call, _ in calls("/key")}


@pytest.mark.parametrize("kind", MODULES)
def test_every_call_takes_all_that_it_can_be_given(connect: Callable[[str], Driven], kind: str, key: str) -> None:
    client = connect(kind)
    *others, (cuda, handle) = calls(key)

    answers = {call: getattr(client, call)(**completely(client, call, own)) for call, own in others}
    with pytest.raises(InferenceServerException, match="'mine'"):  # there is no such handle
        getattr(client, cuda)(**completely(client, cuda, handle))

    assert [answers[call] for call in ("is_server_live", "is_server_ready", "is_model_ready")] == [True] * 3
    assert "mine" in json.dumps(answers["get_system_shared_memory_status"])


@pytest.mark.parametrize("kind", MODULES)
def test_all_that_a_request_says_reaches_the_model(connect: Callable[[str], Driven], kind: str) -> None:
    client = connect(kind)

    result = client.infer(**completely(client, "infer", saying_all(client)))

    assert repeated(result)


def test_all_that_an_asynchronous_http_request_says_reaches_the_model(connect: Callable[[str], Driven]) -> None:
    client = connect("http")

    pending = client.async_infer(**completely(client, "async_infer", saying_all(client)))

    assert repeated(pending.get_result())


def test_all_that_an_asynchronous_grpc_request_says_reaches_the_model(connect: Callable[[str], Driven]) -> None:
    client, gathered = connect("grpc"), Gathered()

    client.async_infer(**completely(client, "async_infer", {**saying_all(client), "callback": gathered}))

    assert repeated(gathered.next())


def test_all_that_a_request_of_a_stream_says_reaches_the_model(connect: Callable[[str], Driven]) -> None:
    client, gathered = connect("grpc"), Gathered()
    request = {**saying_all(client), "enable_empty_final_response": True}

    client.start_stream(**completely(client, "start_stream", {"callback": gathered}))
    client.async_stream_infer(**completely(client, "async_stream_infer", request))
    answer = gathered.next()
    client.stop_stream(**completely(client, "stop_stream", {"cancel_requests": False}))

    assert repeated(answer)
    assert answer.get_response().parameters["triton_final_response"].bool_param is True


def test_all_that_a_request_of_an_asynchronous_stream_says_reaches_the_model(
    connect: Callable[[str], Driven],
) -> None:
    client = connect("grpc.aio")

    async def requests() -> AsyncIterator[dict[str, Any]]:
        yield {**saying_all(client), "enable_empty_final_response": True}

    async def answered() -> list[Any]:
        arguments = completely(client, "stream_infer", {"inputs_iterator": requests()})
        return [error or result async for result, error in client.itself.stream_infer(**arguments)]

    (answer,) = client.run(answered())
    assert repeated(answer)


@pytest.mark.parametrize("kind", ["http", "http.aio"])
def test_all_that_a_request_says_is_in_the_body_that_the_client_makes(
    connect: Callable[[str], Driven], restricted: Running, kind: str
) -> None:
    client = connect(kind)
    said = {name: value for name, value in saying_all(client).items() if not name.startswith("model_")}
    body, length = client.generate_request_body(**completely(client, "generate_request_body", said))
    wire = HTTPConnection(restricted.url)
    headers = {**SECRET, "Inference-Header-Content-Length": str(length), "Accept-Encoding": "gzip"}
    wire.request("POST", "/v2/models/whole/infer", body, headers)
    answer = wire.getresponse()
    parts = {"response_body": answer.read(), "content_encoding": answer.headers["Content-Encoding"], "verbose": True}
    parts["header_length"] = int(answer.headers["Inference-Header-Content-Length"])
    wire.close()

    result = client.parse_response_body(**completely(client, "parse_response_body", parts))

    assert parts["content_encoding"] == "gzip"
    assert repeated(result, headers=False)
