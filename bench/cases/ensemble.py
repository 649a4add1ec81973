"""An ensemble of three steps over HTTP: what handing a request from model to model costs the server."""

import functools
import itertools
import shutil
from collections.abc import Sequence
from pathlib import Path

from cases.case import ADD_SUB, Case
from load import with_cost
from report import Goal, Row
from rounds import MODELS, Run, side_by_side
from servers import WORK, Running

_CONCURRENCIES = (1, 16, 64)
_STEPS = 3
_ENSEMBLE = """platform: "ensemble"
max_batch_size: 64
input [ { name: "INPUT0" data_type: TYPE_FP32 dims: [ 16 ] }, { name: "INPUT1" data_type: TYPE_FP32 dims: [ 16 ] } ]
output [ { name: "OUTPUT0" data_type: TYPE_FP32 dims: [ 16 ] }, { name: "OUTPUT1" data_type: TYPE_FP32 dims: [ 16 ] } ]
ensemble_scheduling { step [ STEPS ] }
"""
_STEP = """{{ model_name: "{model}" model_version: -1
  input_map [ {{ key: "INPUT0" value: "{before}0" }}, {{ key: "INPUT1" value: "{before}1" }} ]
  output_map [ {{ key: "OUTPUT0" value: "{after}0" }}, {{ key: "OUTPUT1" value: "{after}1" }} ] }}"""


def measure(run: Run) -> Sequence[Row]:
    def once(running: Running) -> dict[str, float]:
        numbers = {}
        for model, message in ADD_SUB.items():
            for concurrency in _CONCURRENCIES:
                load_it = functools.partial(run.generator, running.port, f"three_{model}", concurrency)
                load, cost = with_cost(running, f"three_{model}", load_it)
                numbers[f"concurrency {concurrency}{message}: inferences/s"] = load.per_second
                numbers[f"concurrency {concurrency}{message}: p99, ms"] = load.p99_milliseconds
                numbers[f"concurrency {concurrency}{message}: server's processor time, µs each"] = cost
        return numbers

    seen = side_by_side(run, once, models=built(WORK / "ensemble"))
    labels = [f"concurrency {each}{message}: inferences/s" for message in ADD_SUB.values() for each in _CONCURRENCIES]
    return seen.rows({label: Goal(least=1.5, of_ratio=True) for label in labels})


def built(repository: Path) -> Path:
    """The repository with an ensemble of three copies of each add/sub model, one behind the other."""
    for model in ADD_SUB:
        steps = []
        tensors = ["INPUT", *(f"between_{number}_" for number in range(1, _STEPS)), "OUTPUT"]
        for number, (before, after) in enumerate(itertools.pairwise(tensors), 1):
            name = f"{model}_{number}"
            shutil.copytree(MODELS / model, repository / name, dirs_exist_ok=True)
            steps.append(_STEP.format(model=name, before=before, after=after))
        folder = repository / f"three_{model}"
        (folder / "1").mkdir(parents=True, exist_ok=True)
        (folder / "config.pbtxt").write_text(_ENSEMBLE.replace("STEPS", ",\n".join(steps)))
    return repository


CASE = Case(
    "ensemble",
    "An ensemble of three steps",
    "Three copies of the add/sub `TritonPythonModel` one behind the other, two FP32[16] tensors between them, "
    "`max_batch_size: 64`, `dynamic_batching {}`; perf_analyzer over HTTP on the same machine. The rows 'on the event "
    "loop' are the same code, configured with `execute_on: event_loop`, which Naiad alone understands.",
    measure,
)
