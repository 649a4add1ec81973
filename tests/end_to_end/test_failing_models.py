"""Models that raise, answer nonsense, hang, or take their worker with them: who else notices."""

import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

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

DIES = """
from pathlib import Path
import time

from naiad_custom import FP32, Array, model

GATE = Path({gate!r})

@model
class Dies:
    def load(self, context):
        if (GATE / "broken").exists():
            raise ValueError("not yet")
        while (GATE / "shut").exists():
            time.sleep(0.002)

    def execute(self, x: Array[FP32, -1]) -> Array[FP32, -1]:
        if x[0] < 0:
            raise SystemExit("the model ends its worker")
        return x
"""


@contextmanager
def loaded(server: Running, name: str, source: str, config: str = "") -> Iterator[None]:
    """The server has that model meanwhile."""
    models.write(server.repository, name, source, config)
    answer = server.load(name)
    assert answer.status == 200, answer.body
    try:
        yield
    finally:
        server.unload(name)


# Raising


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
    with loaded(server, "raises", RAISES.format(statement=statement)):
        answers = [server.infer("raises", 1, id="r1") for _ in range(3)]
        until(lambda: server.ask("GET", "/v2/models/raises/ready").status == 200)

    assert [answer.status for answer in answers] == [500] * 3
    assert told in answers[0].error
    assert "r1" in answers[0].error
    assert "Traceback" not in answers[0].error


def test_the_traceback_of_a_failure_is_in_the_log_with_its_line(server: Running) -> None:
    with loaded(server, "raises", RAISES.format(statement="raise ValueError('look here')")):
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
    with loaded(server, "raises", RAISES.format(statement=statement)):
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
    with loaded(server, "codes", TRITON, config):
        given = {"name": "x", "datatype": "FP32", "shape": [1, 1], "data": [code]}
        answer = server.ask("POST", "/v2/models/codes/infer", {"inputs": [given]})

    assert answer.status == status
    assert code == 8 or "so it is" in answer.error


def test_in_a_batch_only_the_requests_that_failed_get_errors(server: Running, gate: Gate) -> None:
    source = TRITON.replace("def execute(self, requests):\n", "def execute(self, requests):\n        wait()\n")
    source = f"import time\nfrom pathlib import Path\n{source}\n{gate.function('wait')}"
    config = models.triton_config({"x": "FP32"}, {"y": "FP32"}, "1", "max_batch_size: 8 dynamic_batching {}")
    with loaded(server, "codes", source, config), server.connections(5) as wires:
        given = {"name": "x", "datatype": "FP32", "shape": [1, 1]}
        requests = [{"inputs": [given | {"data": [code]}]} for code in (-1, -1, 3, -1, 4)]
        wires[0].send(post("/v2/models/codes/infer", requests[0]))
        gate.wait_until_entered()
        for wire, request in zip(wires[1:], requests[1:], strict=True):
            wire.send(post("/v2/models/codes/infer", request))
        server.read_all()
        gate.open()
        answers = [wire.answer() for wire in wires]
        (statistics,) = server.ask("GET", "/v2/models/codes/stats").document["model_stats"]

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


# Hanging


def test_a_request_is_told_when_its_deadline_passes_while_the_model_hangs(server: Running, gate: Gate) -> None:
    gate.write_model(server.repository, "hangs")
    server.load("hangs")

    late = server.infer("hangs", 1, id="r2", headers={"Request-Timeout": "0.05"})
    waiting = server.infer("hangs", 1, headers={"Request-Timeout": "0.05"})
    others = server.infer("echo", 1)
    executions = gate.entered
    gate.open()
    again = server.infer("hangs", 1, headers={"Request-Timeout": "30"})
    server.unload("hangs")

    assert (late.status, waiting.status, others.status, again.status) == (504, 504, 200, 200)
    assert "r2" in late.error
    assert "while it was executing" in late.error
    assert "while it was waiting" in waiting.error
    assert executions == 1


def test_while_one_instance_hangs_another_serves(server: Running, gate: Gate) -> None:
    gate.write_model(server.repository, "hangs", "instance_group { count: 2 }")
    server.load("hangs")

    late = server.infer("hangs", 1, headers={"Request-Timeout": "0.05"})
    first_hangs = gate.entered
    with ThreadPoolExecutor(1) as pool:
        second = pool.submit(server.infer, "hangs", 1)
        gate.wait_until_entered(2)
        ready = server.ask("GET", "/v2/models/hangs/ready").status
        gate.open()
    server.unload("hangs")

    assert (late.status, first_hangs, second.result().status, ready) == (504, 1, 200, 200)


@pytest.mark.parametrize("seconds", ["0", "-1", "soon", "nan", "inf", ""])
def test_a_deadline_that_makes_no_sense_is_refused(server: Running, seconds: str) -> None:
    answer = server.infer("echo", 1, headers={"Request-Timeout": seconds})

    assert answer.status == 400
    assert "Request-Timeout must be a number of seconds greater than 0" in answer.error


def test_a_client_that_leaves_takes_back_what_has_not_begun(server: Running, gate: Gate) -> None:
    gate.write_model(server.repository, "hangs")
    server.load("hangs")

    with server.connected() as staying:
        staying.send(post("/v2/models/hangs/infer", one_number()))
        gate.wait_until_entered()
        with server.connected() as leaving:
            leaving.send(post("/v2/models/hangs/infer", one_number()))
            server.read_all()
        until(lambda: counted(server, "hangs", "fail") == 1)
        gate.open()
        answer = staying.answer()
    executed = (gate.entered, counted(server, "hangs", "success"))
    server.unload("hangs")

    assert (answer and answer.status, executed) == (200, (1, 1))


def one_number() -> dict:
    return {"inputs": [{"name": "x", "datatype": "FP32", "shape": [1], "data": [1]}]}


def counted(server: Running, model: str, what: str) -> int:
    (statistics,) = server.ask("GET", f"/v2/models/{model}/stats").document["model_stats"]
    count: int = statistics["inference_stats"][what]["count"]
    return count


# Dying


@pytest.fixture
def nursery(tmp_path: Path) -> Iterator[Path]:
    """Files in it hold back (`shut`) or prevent (`broken`) new instances of the model that dies."""
    folder = tmp_path / "nursery"
    folder.mkdir()
    yield folder
    for name in ("shut", "broken"):
        (folder / name).unlink(missing_ok=True)


def test_a_worker_that_dies_is_replaced_and_visible_meanwhile(server: Running, nursery: Path) -> None:
    with loaded(server, "dies", DIES.format(gate=str(nursery))):
        (nursery / "shut").touch()
        lost = server.infer("dies", -1)
        model_ready, server_ready = server.ask("GET", "/v2/models/dies/ready"), server.ready()
        with ThreadPoolExecutor(1) as pool:
            waiting = pool.submit(server.infer, "dies", 2)
            others = server.infer("echo", 1)
            (nursery / "shut").unlink()
            served = waiting.result()
        until(lambda: server.ask("GET", "/v2/models/dies/ready").status == 200)

    assert (lost.status, "the model ends its worker" in lost.error) == (500, True)
    assert (model_ready.status, server_ready, others.status, served.status) == (400, False, 200, 200)
    assert "instance 'dies_0' is DEAD" in model_ready.error


def test_while_one_worker_is_replaced_the_other_instance_serves(server: Running, nursery: Path) -> None:
    with loaded(server, "dies", DIES.format(gate=str(nursery)), "instance_group { count: 2 }"):
        (nursery / "shut").touch()
        replaced = server.log.count("has a new worker")
        lost = server.infer("dies", -1)
        served = [server.infer("dies", 1).status for _ in range(5)]
        ready = server.ask("GET", "/v2/models/dies/ready").status
        (nursery / "shut").unlink()
        until(lambda: server.log.count("has a new worker") > replaced)

    assert (lost.status, served, ready) == (500, [200] * 5, 200)


def test_a_model_that_cannot_be_replaced_refuses_and_comes_back_when_it_can(server: Running, nursery: Path) -> None:
    with loaded(server, "dies", DIES.format(gate=str(nursery))):
        (nursery / "broken").touch()
        lost = server.infer("dies", -1)
        until(lambda: "not yet" in server.ask("GET", "/v2/models/dies/ready").body.decode())
        refused = until(lambda: next(filter(lambda it: it.status == 503, [server.infer("dies", 1)]), None))
        ready = server.ready()
        (nursery / "broken").unlink()
        until(lambda: server.infer("dies", 1).status == 200)

    assert (lost.status, refused.headers["retry-after"], ready) == (500, "1", False)
    assert "a new one failed to start (" in refused.error
    assert "not yet" in refused.error


def test_requests_that_wait_behind_one_that_kills_the_worker_are_served_by_the_next(
    server: Running, nursery: Path
) -> None:
    with loaded(server, "dies", DIES.format(gate=str(nursery))), server.connected() as wire:
        request = one_number()
        deadly = json.loads(json.dumps(request).replace("[1]}", "[-1]}"))
        with ThreadPoolExecutor(8) as pool:
            asked = [pool.submit(server.ask, "POST", "/v2/models/dies/infer", request) for _ in range(30)]
            wire.send(post("/v2/models/dies/infer", deadly))
            answer = wire.answer()
            statuses = [each.result().status for each in asked]

    assert answer is not None
    assert (answer.status, set(statuses)) == (500, {200})
