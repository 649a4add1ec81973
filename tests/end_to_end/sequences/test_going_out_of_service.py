"""Sequences that run while their model is unloaded or loaded anew: they go on where they began."""

from collections.abc import Callable
from pathlib import Path

from .. import models
from ..running import Running, until

Start = Callable[..., Running]

_MULTIPLIES = """
from naiad_custom import FP32, Array, model

@model(max_batch_size=4, outputs=("y", "after"))
def add(x: Array[FP32, 1], before: Array[FP32, 1]) -> tuple[Array[FP32, 1], Array[FP32, 1]]:
    total = before + x * {factor}
    return total, total
"""
_STATE = 'state [ { input_name: "before" output_name: "after" data_type: TYPE_FP32 dims: 1 } ]'


class Grows:
    """The model `grows` of a server: it adds up what its sequences send, times a factor."""

    def __init__(self, start: Start, repository: Path, idle: int) -> None:
        self._repository = repository
        self._config = f"sequence_batching {{ max_sequence_idle_microseconds: {idle} {_STATE} }}"
        self.write(1)
        self.server = start("--model-control-mode=explicit", "--load-model=*")

    def write(self, factor: int) -> None:
        models.write(self._repository, "grows", _MULTIPLIES.format(factor=factor), self._config)

    def ask(self, sequence: int, start: bool = False, end: bool = False) -> float | int:
        """The sum so far after one more 1, or the status of a refusal."""
        given = {"name": "x", "datatype": "FP32", "shape": [1, 1], "data": [1]}
        place = {"sequence_id": sequence, "sequence_start": start, "sequence_end": end}
        answer = self.server.ask("POST", "/v2/models/grows/infer", {"inputs": [given], "parameters": place})
        return float(answer.document["outputs"][0]["data"][0]) if answer.status == 200 else answer.status

    @property
    def state(self) -> str:
        (entry,) = self.server.entries("grows")
        return entry["state"]


def test_a_sequence_ends_at_a_model_that_was_unloaded(start: Start, repository: Path) -> None:
    model = Grows(start, repository, idle=60_000_000)
    assert model.ask(1, start=True) == 1

    assert model.server.unload("grows").status == 200

    assert model.ask(2, start=True) in (400, 503)
    assert model.ask(1) == 2
    assert model.ask(1, end=True) == 3
    until(lambda: model.state == "UNAVAILABLE")
    assert model.ask(1) in (400, 503)
    model.server.stop()


def test_a_sequence_that_falls_silent_lets_its_model_go(start: Start, repository: Path) -> None:
    model = Grows(start, repository, idle=200_000)
    assert model.ask(1, start=True) == 1

    assert model.server.unload("grows").status == 200

    until(lambda: model.state == "UNAVAILABLE")
    model.server.stop()


def test_a_sequence_goes_on_at_the_model_that_another_has_replaced(start: Start, repository: Path) -> None:
    model = Grows(start, repository, idle=60_000_000)
    assert model.ask(1, start=True) == 1

    model.write(100)
    assert model.server.load("grows").status == 200

    assert model.ask(2, start=True) == 100
    assert model.ask(1) == 2
    assert model.ask(1, end=True) == 3
    assert model.ask(2, end=True) == 200
    assert model.ask(1, start=True) == 100
    assert model.ask(1, end=True) == 200
    model.server.stop()
