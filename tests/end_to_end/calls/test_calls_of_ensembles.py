"""Models that call ensembles, and ensembles whose steps call models."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tritonclient.http as http
from tritonclient.utils import InferenceServerException

from ..running import Running
from . import sources

PIPE = """
platform: "ensemble"
{config}
ensemble_scheduling {{
  step [
    {{
      model_name: "{first}" model_version: -1
      input_map {{ key: "IN" value: "IN" }} output_map {{ key: "OUT" value: "between" }}
    }},
    {{
      model_name: "{second}" model_version: -1
      input_map {{ key: "IN" value: "between" }} output_map {{ key: "OUT" value: "OUT" }}
    }}
  ]
}}
"""
FORWARD = '''
import triton_python_backend_utils as pb_utils


class TritonPythonModel:
    """Asks another model the same; with 0 it answers itself."""

    def execute(self, requests):
        responses = []
        for request in requests:
            given = request.inputs()[0]
            if int(given.as_numpy()[0]) == 0:
                responses.append(pb_utils.InferenceResponse([pb_utils.Tensor("OUT", given.as_numpy())]))
                continue
            asked = pb_utils.InferenceRequest(
                model_name="TARGET", requested_output_names=["OUT"], inputs=[pb_utils.Tensor("IN", given.as_numpy())]
            )
            response = asked.exec()
            responses.append(
                pb_utils.InferenceResponse(error=response.error()) if response.has_error() else response
            )
        return responses
'''
PLUS_ONE = """
import triton_python_backend_utils as pb_utils


class TritonPythonModel:
    def execute(self, requests):
        return [
            pb_utils.InferenceResponse([pb_utils.Tensor("OUT", request.inputs()[0].as_numpy() + 1)])
            for request in requests
        ]
"""


def pipe(models: Path, name: str, first: str, second: str) -> None:
    (models / name / "1").mkdir(parents=True)
    text = PIPE.format(config=sources.ONE_CONFIG, first=first, second=second)
    (models / name / "config.pbtxt").write_text(text, encoding="utf-8")


def forward(models: Path, name: str, target: str, count: int = 1) -> None:
    sources.write(models, name, FORWARD.replace("TARGET", target), sources.ONE_CONFIG, count)


LOADS = PLUS_ONE.replace(
    "    def execute",
    """    def initialize(self, args):
        pb_utils.load_model("loaded_pipe")

    def execute""",
)


def test_a_model_that_loads_an_ensemble_of_itself_is_refused_at_once(calling: Running) -> None:
    sources.write(calling.repository, "loads", LOADS, sources.ONE_CONFIG)
    pipe(calling.repository, "loaded_pipe", "loads", "loads")

    answer = calling.load("loads")

    assert answer.status == 400
    assert "ensemble 'loaded_pipe' needs model 'loads', which is being loaded and waits for" in answer.error
    assert "Traceback" not in answer.error
    for name in ("loads", "loaded_pipe"):
        calling.unload(name)


@pytest.fixture
def asked(models: Path, start_calling: Callable[[], Running]) -> Iterator[Callable[[str, int], int]]:
    """Ask a model of a server that is started with all that the test has written by then."""
    opened: list[Any] = []

    def ask(model: str, value: int) -> int:
        if not opened:
            running = start_calling()
            opened.extend([running, running.client()])
        given = http.InferInput("IN", [1], "INT32")
        given.set_data_from_numpy(np.array([value], np.int32))
        return int(opened[1].infer(model, [given]).as_numpy("OUT")[0])

    sources.write(models, "plus_one", PLUS_ONE, sources.ONE_CONFIG)
    yield ask
    opened[1].close()
    opened[0].stop()


def test_a_model_calls_an_ensemble(models: Path, asked: Callable[[str, int], int]) -> None:
    pipe(models, "pipe", "plus_one", "plus_one")
    forward(models, "outer", "pipe")

    assert asked("outer", 5) == 7


def test_a_step_of_an_ensemble_calls_a_model(models: Path, asked: Callable[[str, int], int]) -> None:
    forward(models, "inner", "plus_one")
    pipe(models, "pipe", "inner", "inner")

    assert asked("pipe", 5) == 7


def test_a_model_that_calls_an_ensemble_that_needs_the_model_is_refused(
    models: Path, asked: Callable[[str, int], int]
) -> None:
    pipe(models, "pipe", "plus_one", "outer")
    forward(models, "outer", "pipe")

    with pytest.raises(InferenceServerException, match="ring 'outer' -> 'outer'") as told:
        asked("outer", 5)

    assert told.value.status() == "503"
    assert asked("outer", 0) == 0


def test_the_same_with_another_instance_is_answered(models: Path, asked: Callable[[str, int], int]) -> None:
    pipe(models, "pipe", "outer", "plus_one")
    code = FORWARD.replace("TARGET", "pipe").replace('"IN", given.as_numpy()', '"IN", given.as_numpy() * 0')
    sources.write(models, "outer", code, sources.ONE_CONFIG, count=2)

    assert asked("outer", 5) == 1


def test_a_ring_over_two_ensembles_is_refused(models: Path, asked: Callable[[str, int], int]) -> None:
    forward(models, "a", "to_b")
    forward(models, "b", "to_a")
    pipe(models, "to_a", "plus_one", "a")
    pipe(models, "to_b", "plus_one", "b")

    with pytest.raises(InferenceServerException, match="ring 'b' -> 'a' -> 'b'"):
        asked("a", 5)
