"""Streams that their clients abandon: the model stops and takes its next request, whatever its kind and its worker."""

from collections.abc import Iterator

import pytest

from . import models
from .conftest import ending_well
from .readers import reading
from .running import Running
from .streaming import ENDLESS, TELLS, stand_still

ASKS = """
import numpy as np
import triton_python_backend_utils as pb_utils

class TritonPythonModel:
    def execute(self, requests):
        for request in requests:
            sender = request.get_response_sender()
            count, size = (
                int(pb_utils.get_input_tensor_by_name(request, name).as_numpy()[0]) for name in ("count", "size")
            )
            text = np.array([b"x" * size], object)
            for number in range(count):
                if sender.is_cancelled():
                    break
                tensors = [pb_utils.Tensor("number", np.array([number], np.int32)), pb_utils.Tensor("text", text)]
                sender.send(pb_utils.InferenceResponse(tensors))
            sender.send(flags=pb_utils.TRITONSERVER_RESPONSE_COMPLETE_FINAL)
"""
CONFIG = models.triton_config(
    {"count": "INT32", "size": "INT32"},
    {"number": "INT32", "text": "BYTES"},
    "1",
    "model_transaction_policy { decoupled: true }",
)
ISOLATED = 'parameters { key: "isolation" value { string_value: "process" } }'
GENERATORS = {"generates": ("Iterator", ""), "awaits": ("AsyncIterator", "async ")}
MODELS = tuple(f"{kind}{where}" for kind in (*GENERATORS, "asks") for where in ("", "_in_a_process"))


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    """A server of endless streams of every kind, each with one instance, on a thread and in a process."""
    folder = tmp_path_factory.mktemp("abandoned")
    for where, options, config in (("", "", ""), ("_in_a_process", ', isolation="process"', ISOLATED)):
        for kind, (iterator, prefix) in GENERATORS.items():
            source = TELLS.format(iterator=iterator, kind=prefix, options=options)
            models.write(folder / "models", kind + where, source.replace("def tells(", f"def {kind + where}("))
        models.write(folder / "models", "asks" + where, ASKS, CONFIG + config)
    models.write(folder / "models", "echo", models.ECHO)
    with ending_well(Running(folder / "models", folder / "log")) as running:
        yield running


@pytest.mark.parametrize("protocol", ["http", "grpc"])
@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("stands_still", [False, True])
def test_the_model_of_an_abandoned_stream_takes_its_next_request(
    server: Running, protocol: str, model: str, stands_still: bool
) -> None:
    with reading(server, protocol, (ENDLESS, 20_000, model)) as (reader,):
        assert [next(reader.numbers) for _ in range(3)] == [0, 1, 2]
        if stands_still:
            stand_still(server, model)

    with reading(server, protocol, (5, 1, model)) as (reader,):
        assert list(reader.numbers) == list(range(5))
