"""Models that take their worker with them: it is replaced, and health tells meanwhile."""

import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from . import models
from .asking import ONE
from .running import Running, post, until

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


@pytest.fixture
def nursery(tmp_path: Path) -> Iterator[Path]:
    """Files in it hold back (`shut`) or prevent (`broken`) new instances of the model that dies."""
    folder = tmp_path / "nursery"
    folder.mkdir()
    yield folder
    for name in ("shut", "broken"):
        (folder / name).unlink(missing_ok=True)


def test_a_worker_that_dies_is_replaced_and_visible_meanwhile(server: Running, nursery: Path) -> None:
    with models.loaded(server, "dies", DIES.format(gate=str(nursery))):
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
    with models.loaded(server, "dies", DIES.format(gate=str(nursery)), "instance_group { count: 2 }"):
        (nursery / "shut").touch()
        replaced = server.log.count("has a new worker")
        lost = server.infer("dies", -1)
        served = [server.infer("dies", 1).status for _ in range(5)]
        ready = server.ask("GET", "/v2/models/dies/ready").status
        (nursery / "shut").unlink()
        until(lambda: server.log.count("has a new worker") > replaced)

    assert (lost.status, served, ready) == (500, [200] * 5, 200)


def test_a_model_that_cannot_be_replaced_refuses_and_comes_back_when_it_can(server: Running, nursery: Path) -> None:
    with models.loaded(server, "dies", DIES.format(gate=str(nursery))):
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
    with models.loaded(server, "dies", DIES.format(gate=str(nursery))), server.connected() as wire:
        request = ONE
        deadly = json.loads(json.dumps(request).replace("[1]}", "[-1]}"))
        with ThreadPoolExecutor(8) as pool:
            asked = [pool.submit(server.ask, "POST", "/v2/models/dies/infer", request) for _ in range(30)]
            wire.send(post("/v2/models/dies/infer", deadly))
            answer = wire.answer()
            statuses = [each.result().status for each in asked]

    assert answer is not None
    assert (answer.status, set(statuses)) == (500, {200})
