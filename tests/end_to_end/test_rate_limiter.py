"""The rate limiter of a whole server: executions wait for what others hold, and what cannot ever run ends the start."""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from . import models
from .asking import ONE, ROW
from .conftest import Start
from .gates import Gate
from .running import post, until
from .test_metrics import Scraped, scrape

SHARED = 'instance_group [ {{ kind: KIND_CPU count: {} rate_limiter {{ resources [ {{ name: "R" count: {} }} ] }} }} ]'


def units(scraped: Scraped, name: str) -> float:
    labels = frozenset({"resource": "R", "device": "cpu"}.items())
    return scraped[f"naiad_rate_limit_{name}", labels]


def test_executions_wait_for_what_those_of_other_models_hold(start: Start, repository: Path, gate: Gate) -> None:
    gate.write_model(repository, "a", SHARED.format(2, 1))
    gate.write_model(repository, "b", SHARED.format(1, 2))
    server = start("--rate-limit=execution_count", "--rate-limit-resource=R:2")

    with server.connections(3) as (first, second, third):
        for wire in (first, second):
            wire.send(post("/v2/models/a/infer", ONE))
        gate.wait_until_entered(2)
        third.send(post("/v2/models/b/infer", ONE))
        until(lambda: units(scrape(server), "waiting") == 1)
        meanwhile = scrape(server)
        entered = gate.entered
        gate.open()
        answers = [wire.answer() for wire in (first, second, third)]

    assert [units(meanwhile, name) for name in ("capacity", "in_use", "waiting")] == [2, 2, 1]
    assert entered == 2
    assert [answer and answer.status for answer in answers] == [200] * 3
    assert units(scrape(server), "in_use") == 0
    server.stop()


def test_models_that_do_not_ask_for_it_do_not_wait_for_it(start: Start, repository: Path, gate: Gate) -> None:
    gate.write_model(repository, "a", SHARED.format(1, 1))
    server = start("--rate-limit=execution_count")

    with server.connections(1) as (wire,):
        wire.send(post("/v2/models/a/infer", ONE))
        gate.wait_until_entered()
        other = server.infer("echo", 5)
        gate.open()
        answer = wire.answer()

    assert other.document["outputs"][0]["data"] == [5]
    assert answer is not None
    assert answer.status == 200
    server.stop()


ACCUMULATES = """
import numpy as np
import triton_python_backend_utils as pb_utils

class TritonPythonModel:
    def execute(self, requests):
        return [self._answer(request) for request in requests]

    def _answer(self, request):
        given = {name: pb_utils.get_input_tensor_by_name(request, name).as_numpy() for name in ("x", "START", "IN")}
        total = (np.where(given["START"] == 1, 0, given["IN"]) + given["x"]).astype(np.float32)
        return pb_utils.InferenceResponse([pb_utils.Tensor("y", total), pb_utils.Tensor("OUT", total)])
"""
SEQUENCES = """
backend: "python"
max_batch_size: 4
input [ { name: "x" data_type: TYPE_FP32 dims: [ 1 ] } ]
output [ { name: "y" data_type: TYPE_FP32 dims: [ 1 ] } ]
sequence_batching {
  direct { }
  control_input [ { name: "START" control [ { kind: CONTROL_SEQUENCE_START int32_false_true: [ 0, 1 ] } ] } ]
  state [ { input_name: "IN" output_name: "OUT" data_type: TYPE_FP32 dims: [ 1 ] } ]
}
model_warmup [ {
  name: "two" batch_size: 2 inputs { key: "x" value { data_type: TYPE_FP32 dims: [ 1 ] zero_data: true } }
} ]
"""


def test_models_of_sequences_share_resources_and_lose_no_state(start: Start, repository: Path) -> None:
    for name in ("s", "t"):
        models.write(repository, name, ACCUMULATES, SEQUENCES + SHARED.format(2, 1))
    server = start("--rate-limit=execution_count")

    def last_total(number: int) -> float:
        for step in range(10):
            flags = {"sequence_id": number, "sequence_start": step == 0, "sequence_end": step == 9}
            answer = server.ask("POST", f"/v2/models/{'st'[number % 2]}/infer", {**ROW, "parameters": flags})
        total: float = answer.document["outputs"][0]["data"][0]
        return total

    with ThreadPoolExecutor(12) as pool:
        totals = list(pool.map(last_total, range(1, 25)))

    assert totals == [10] * 24
    assert units(scrape(server), "in_use") == 0
    server.stop()


CALLS = """
import triton_python_backend_utils as pb_utils

class TritonPythonModel:
    def execute(self, requests):
        return [self._answer(request) for request in requests]

    def _answer(self, request):
        given = pb_utils.get_input_tensor_by_name(request, "x")
        asked = pb_utils.InferenceRequest(model_name="inner", requested_output_names=["output"], inputs=[given])
        answer = asked.exec()
        if answer.has_error():
            return pb_utils.InferenceResponse(error=answer.error())
        return pb_utils.InferenceResponse([pb_utils.Tensor("y", answer.output_tensors()[0].as_numpy() + 1)])
"""
CALLS_CONFIG = """
backend: "python"
input [ { name: "x" data_type: TYPE_FP32 dims: [ -1 ] } ]
output [ { name: "y" data_type: TYPE_FP32 dims: [ -1 ] } ]
"""


def test_a_model_that_calls_another_lends_it_what_both_need(start: Start, repository: Path) -> None:
    models.write(repository, "inner", models.ECHO.replace("def echo", "def inner"), SHARED.format(1, 1))
    models.write(repository, "outer", CALLS, CALLS_CONFIG + SHARED.format(3, 1))
    server = start("--rate-limit=execution_count")

    with ThreadPoolExecutor(6) as pool:
        answers = list(pool.map(lambda value: server.infer("outer", value), range(24)))

    assert [answer.document["outputs"][0]["data"] for answer in answers] == [[value + 1] for value in range(24)]
    assert units(scrape(server), "in_use") == 0
    server.stop()


def test_a_limit_that_a_model_can_never_keep_ends_the_start_and_says_so(start: Start, repository: Path) -> None:
    models.write(repository, "large", models.ECHO, SHARED.format(1, 5))

    server = start("--rate-limit=execution_count", "--rate-limit-resource=R:4")

    assert server.exit_status() == 1
    assert (
        'Resource count for \\"R\\" is limited to 4 which will prevent scheduling of one or more model instances, the '
        "minimum required count is 5" in server.log
    )


def test_what_is_no_limit_is_answered_at_once(start: Start, repository: Path) -> None:
    server = start("--rate-limit=execution_count", "--rate-limit-resource=R")

    assert server.exit_status() != 0
    assert "'R' must be NAME:COUNT or NAME:COUNT:DEVICE" in server.log
