"""The rate limiter of a whole server: executions wait for what others hold, and what cannot ever run ends the start."""

from pathlib import Path

import pytest

from . import models
from .asking import ONE
from .conftest import Start
from .gates import Gate
from .running import Running, post, until
from .test_metrics import Scraped, scrape

SHARED = 'instance_group [ {{ kind: KIND_CPU count: {} rate_limiter {{ resources [ {{ name: "R" count: {} }} ] }} }} ]'

TURN = 'instance_group [ {{ kind: KIND_CPU rate_limiter {{ resources [ {{ name: "R" count: 1 }} ] priority: {} }} }} ]'
RECORDS = """
from naiad_custom import FP32, Array, model

@model
def records(x: Array[FP32, -1]) -> Array[FP32, -1]:
    with open({path!r}, "a") as file:
        file.write({name!r})
    return x
"""


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


def test_models_of_priorities_1_and_2_execute_as_2_to_1_while_both_have_work(
    start: Start, repository: Path, gate: Gate, tmp_path: Path
) -> None:
    record = tmp_path / "record"
    for name, priority in (("1", 1), ("2", 2)):
        models.write(repository, name, RECORDS.format(path=str(record), name=name), TURN.format(priority))
    gate.write_model(repository, "gate", SHARED.format(1, 1))
    server = start("--rate-limit=execution_count")

    with server.connections(101) as (first, *others):
        first.send(post("/v2/models/gate/infer", ONE))
        gate.wait_until_entered()
        for index, wire in enumerate(others):
            wire.send(post(f"/v2/models/{1 + index % 2}/infer", ONE))
        until(lambda: sum(pending(server, name) for name in "12") == len(others))
        gate.open()
        answers = [wire.answer() for wire in (first, *others)]

    executions = record.read_text()[:60]
    assert {answer and answer.status for answer in answers} == {200}
    assert executions.count("1") / executions.count("2") == pytest.approx(2, rel=0.05)
    server.stop()


def pending(server: Running, model: str) -> float:
    """How many requests to the model wait."""
    labels = frozenset({"model": model, "version": "1"}.items())
    return scrape(server)["nv_inference_pending_request_count", labels]
