"""A server of the models that a test file has in `MODELS`, asked by Triton's own clients."""

from collections.abc import Callable, Iterator, Sequence
from queue import Queue
from typing import Any

import numpy as np
import pytest
import tritonclient.grpc
import tritonclient.http

from ..conftest import ending_well
from ..running import PATIENCE, Running

Ask = Callable[..., Any]


@pytest.fixture(scope="module")
def running(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    """The server; models are loaded and unloaded by request."""
    folder = tmp_path_factory.mktemp("python_models")
    for name, model in request.module.MODELS.items():
        model.write(folder / "models", name)
    options = getattr(request.module, "OPTIONS", ("--model-control-mode=explicit", "--load-model=*"))
    with ending_well(Running(folder / "models", folder / "log", *options)) as running:
        yield running


@pytest.fixture(params=[tritonclient.http, tritonclient.grpc], ids=["http", "grpc"])
def ask(request: pytest.FixtureRequest, running: Running) -> Iterator[Ask]:
    """Infer with a client of each protocol: model and X give Y."""
    library = request.param
    address = running.url if library is tritonclient.http else f"127.0.0.1:{running.grpc_port}"
    with library.InferenceServerClient(address) as client:

        def infer(model: str, number: int) -> int:
            result: int = client.infer(model, [_x(library, number)]).as_numpy("Y").item()
            return result

        yield infer


@pytest.fixture
def stream(running: Running) -> Iterator[Ask]:
    """Send requests to a decoupled model on one stream: model, the X of each, and how many responses to wait for."""
    with tritonclient.grpc.InferenceServerClient(f"127.0.0.1:{running.grpc_port}") as client:
        responses: Queue[Any] = Queue()
        client.start_stream(lambda result, error: responses.put(result if error is None else error))

        def infer(model: str, numbers: Sequence[int], count: int) -> list[Any]:
            for number in numbers:
                client.async_stream_infer(model, [_x(tritonclient.grpc, number)])
            received = [responses.get(timeout=PATIENCE) for _ in range(count)]
            return [each if isinstance(each, Exception) else each.as_numpy("Y").item() for each in received]

        yield infer
        client.stop_stream()


def _x(library: Any, number: int) -> Any:
    tensor = library.InferInput("X", [1], "INT64")
    tensor.set_data_from_numpy(np.array([number]))
    return tensor
