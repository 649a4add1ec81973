"""Models that take their worker with them: it is replaced, and health tells meanwhile."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from . import models
from .running import Running, until

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
