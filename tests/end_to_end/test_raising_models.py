"""Models that raise, and models that answer nonsense: the request fails, and nobody else notices."""

from concurrent.futures import ThreadPoolExecutor

import pytest
from onnx import TensorProto, helper

from . import models
from .gates import Gate
from .running import Answer, Running, post, until

RAISES = """
import numpy as np
from naiad_custom import FP32, Array, model

class Unspeakable(Exception):
    def __str__(self):
        raise RuntimeError("even the message fails")

@model
def raises(x: Array[FP32, -1]) -> Array[FP32, -1]:
    {statement}
    return x
"""

TRITON = """
import numpy as np
import triton_python_backend_utils as pb_utils

class TritonPythonModel:
    def execute(self, requests):
        return [self._answer(request) for request in requests]

    def _answer(self, request):
        x = pb_utils.get_input_tensor_by_name(request, "x").as_numpy()
        code = int(x[0, 0])
        if code < 0:
            return pb_utils.InferenceResponse([pb_utils.Tensor("y", x)])
        return pb_utils.InferenceResponse(error=pb_utils.TritonError("so it is", code))
"""


@pytest.mark.parametrize(
    ("statement", "told"),
    [
        ("raise ValueError('out of cheese')", "ValueError: out of cheese"),
        ("x[0] = 1", "read-only"),
        ("np.empty(2**58)", "MemoryError"),
        ("f = lambda: f(); f()", "RecursionError"),
        ("raise StopIteration", "StopIteration"),
        ("assert False", "AssertionError"),
        ("raise ValueError('\\udc80 ' + 'long ' * 100_000)", "ValueError"),
        ("raise Unspeakable", "Unspeakable"),
    ],
)
def test_a_model_that_raises_fails_its_request_alone(server: Running, statement: str, told: str) -> None:
    with models.loaded(server, "raises", RAISES.format(statement=statement)):
        answers = [server.infer("raises", 1, id="r1") for _ in range(3)]
        until(lambda: server.ask("GET", "/v2/models/raises/ready").status == 200)

    assert [answer.status for answer in answers] == [500] * 3
    assert told in answers[0].error
    assert "r1" in answers[0].error
    assert "Traceback" not in answers[0].error


def test_the_traceback_of_a_failure_is_in_the_log_with_its_line(server: Running) -> None:
    with models.loaded(server, "raises", RAISES.format(statement="raise ValueError('look here')")):
        server.infer("raises", 1)

    assert "raises/1/model.py" in server.log
    assert "line 11, in raises" in server.log


@pytest.mark.parametrize(
    ("statement", "told"),
    [
        ("return None", "returned None"),
        ("return x.astype('float64')", "FP64"),
        ("return x[None]", r"shape [1, 1]"),
        ("return {'x': x}", "has no array for output"),
        ("return 'text'", "BYTES"),
        ("return x.astype(complex)", "complex128"),
        ("return object()", "output 'output'"),
        ("return [[1.0], [2.0, 3.0]]", "output 'output'"),
    ],
)
def test_a_model_that_answers_nonsense_is_told_so(server: Running, statement: str, told: str) -> None:
    with models.loaded(server, "raises", RAISES.format(statement=statement)):
        answer = server.infer("raises", 1)

    assert answer.status == 500
    assert told in answer.error
    assert "Traceback" not in answer.error


@pytest.mark.parametrize(
    ("code", "status"),
    [(0, 500), (1, 500), (2, 404), (3, 400), (4, 503), (5, 501), (6, 400), (7, 499), (8, 500)],
)
def test_an_error_of_a_triton_style_model_has_the_status_of_its_code(server: Running, code: int, status: int) -> None:
    config = models.triton_config({"x": "FP32"}, {"y": "FP32"}, "1", "max_batch_size: 8")
    with models.loaded(server, "codes", TRITON, config):
        given = {"name": "x", "datatype": "FP32", "shape": [1, 1], "data": [code]}
        answer = server.ask("POST", "/v2/models/codes/infer", {"inputs": [given]})

    assert answer.status == status
    assert code == 8 or "so it is" in answer.error


def test_in_a_batch_only_the_requests_that_failed_get_errors(server: Running, gate: Gate) -> None:
    source = TRITON.replace("def execute(self, requests):\n", "def execute(self, requests):\n        wait()\n")
    source = f"import time\nfrom pathlib import Path\n{source}\n{gate.function('wait')}"
    config = models.triton_config({"x": "FP32"}, {"y": "FP32"}, "1", "max_batch_size: 8 dynamic_batching {}")
    with models.loaded(server, "codes", source, config), server.connections(5) as wires:
        given = {"name": "x", "datatype": "FP32", "shape": [1, 1]}
        requests = [{"inputs": [given | {"data": [code]}]} for code in (-1, -1, 3, -1, 4)]
        wires[0].send(post("/v2/models/codes/infer", requests[0]))
        gate.wait_until_entered()
        for wire, request in zip(wires[1:], requests[1:], strict=True):
            wire.send(post("/v2/models/codes/infer", request))
        server.read_all()
        gate.open()
        answers = [wire.answer() for wire in wires]
        statistics = server.statistics("codes")

    assert [answer and answer.status for answer in answers] == [200, 200, 400, 200, 503]
    assert statistics["execution_count"] == 2


def test_an_onnx_model_that_fails_on_its_input_fails_that_request_alone(server: Running) -> None:
    table = helper.make_tensor("table", TensorProto.FLOAT, [3], [1.0, 2.0, 3.0])
    node = helper.make_node("Gather", ["table", "index"], ["value"])
    sides = {"index": (TensorProto.INT64, ["n", 1])}, {"value": (TensorProto.FLOAT, ["n", 1])}
    models.write_onnx(server.repository, "gathers", models.onnx_model([node], *sides, [table]))
    server.load("gathers")

    def ask(index: int) -> Answer:
        given = {"name": "index", "datatype": "INT64", "shape": [1, 1], "data": [index]}
        return server.ask("POST", "/v2/models/gathers/infer", {"inputs": [given]})

    with ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(ask, [0, 1, 99, 2] * 10))
    server.unload("gathers")

    assert [answer.status for answer in answers] == [200, 200, 500, 200] * 10
    assert "out of data bounds" in answers[2].error
    assert [answer.document["outputs"][0]["data"] for answer in answers[:2]] == [[1.0], [2.0]]
