"""The same model in each framework under load, against the framework alone: what serving takes from computing."""

import functools
import json
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from cases.case import Case
from frameworks import FRAMEWORKS
from load import wrk
from report import Goal, Row
from rounds import Numbers, Run, by_label
from servers import WORK, Naiad, Running

CONCURRENCY = 64
_BENCH = Path(__file__).resolve().parent.parent
_SCRIPT = _BENCH / "binary_tensors.lua"
_GENERATORS = ("wrk", "perf_analyzer")
_GOALS = {"onnx": 0.65, "torch": 0.65, "aoti": 0.6, "tensorflow": 0.6, "openvino": 0.6}
_TITLES = {
    "onnx": ("ONNX Runtime", "`session.run`"),
    "torch": ("PyTorch", "the scripted module"),
    "aoti": ("AOTInductor", "the package"),
    "tensorflow": ("TensorFlow", "a callable of the session"),
    "openvino": ("OpenVINO", "`request.infer`, in FP32 as well (without `HINT_BF16: NO` it takes BF16 where it can),"),
}


def measure(framework: str, run: Run) -> Sequence[Row]:
    repository = WORK / framework
    model = repository / "mlp" / "1" / FRAMEWORKS[framework].file
    _script("build_model.py", framework, str(repository / "mlp"))
    served: list[Numbers] = []
    alone: list[Numbers] = []
    for _ in range(run.rounds):
        alone.append({"inferences/s": _alone(framework, model, seconds=1.0 if run.quick else 5.0)})
        with Naiad().serve(repository) as running:
            served.append(_load(run, running))
    seen, reference = by_label(served), by_label(alone)
    goal = Goal(least=_GOALS[framework], of_ratio=True)
    rows = []
    for generator in _GENERATORS:
        message = f"concurrency {CONCURRENCY} of {generator}"
        rows += [
            Row(f"{message}: inferences/s", seen[f"{generator}: inferences/s"], reference["inferences/s"], goal),
            Row(f"{message}: p99, ms", seen[f"{generator}: p99, ms"]),
            Row(f"{message}: requests in a batch", seen[f"{generator}: batch"]),
        ]
    return rows


def _load(run: Run, running: Running) -> dict[str, float]:
    url, seconds = f"http://127.0.0.1:{running.port}/v2/models/mlp/infer", 2 if run.quick else 8
    generators = (
        functools.partial(wrk, url, _SCRIPT, CONCURRENCY, seconds),
        functools.partial(run.generator, running.port, "mlp", CONCURRENCY),
    )
    numbers = {}
    for name, generator in zip(_GENERATORS, generators, strict=True):
        before = _counted(running)
        load = generator()
        after = _counted(running)
        numbers[f"{name}: inferences/s"] = load.per_second
        numbers[f"{name}: p99, ms"] = load.p99_milliseconds
        numbers[f"{name}: batch"] = (after[0] - before[0]) / (after[1] - before[1])
    return numbers


def _counted(running: Running) -> tuple[int, int]:
    counted = running.get("/v2/models/mlp/stats")["model_stats"][0]
    return counted["inference_count"], counted["execution_count"]


def _alone(framework: str, model: Path, seconds: float) -> float:
    message = _script("framework_alone.py", framework, str(model), "--batch", "32", "--seconds", str(seconds))
    return float(json.loads(message.splitlines()[-1])["inferences_per_second"])


def _script(name: str, *arguments: str) -> str:
    """What a script of the benchmark prints; a process of its own keeps one framework's threads from another's."""
    command = [sys.executable, str(_BENCH / name), *arguments]
    return subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout


def _case(name: str) -> Case:
    title, alone = _TITLES[name]
    return Case(
        name,
        f"{title} under load",
        "An MLP 512-2048-2048-1000 (FP32), `max_batch_size: 64`, `dynamic_batching {}`, one instance with one thread; "
        "wrk with one thread, then perf_analyzer, over HTTP on the same machine; for each request perf_analyzer takes "
        "some 100 µs of a processor itself, and wrk 15. Beside it, in the same round, "
        f"{alone} alone at batch 32 in one thread.",
        functools.partial(measure, name),
        f"{title} alone",
    )


CASES = tuple(map(_case, _TITLES))
