"""Models in processes of their own: what the way to another process costs, beside the peer's stub process."""

import functools
import shutil
from collections.abc import Sequence
from pathlib import Path

from cases.case import Case
from load import measured, wrk
from report import Goal, Row
from rounds import MODELS, Run, by_label, side_by_side
from servers import WORK, Naiad, Running

SMALL = {1: 1.2, 16: 1.5, 64: 1.4}
LARGE = (("600 KB, concurrency 8", 150_000, 8, 1.8), ("4 MB, concurrency 4", 1_000_000, 4, 1.6))
_SCRIPT = Path(__file__).resolve().parent.parent / "json_bodies.lua"
_COMPUTING = "two instances that compute 2 ms in Python: inferences/s, and on threads"
_BUSY = """import time

import triton_python_backend_utils as pb_utils


class TritonPythonModel:
    def execute(self, requests):
        responses = []
        for request in requests:
            until = time.thread_time() + 0.002
            while time.thread_time() < until:
                pass
            tensors = [pb_utils.Tensor(each.name().replace("IN", "OUT"), each.as_numpy()) for each in request.inputs()]
            responses.append(pb_utils.InferenceResponse(tensors))
        return responses
"""


def measure(run: Run) -> Sequence[Row]:
    def once(running: Running) -> dict[str, float]:
        numbers: dict[str, float] = {}

        def note(label: str, model: str, concurrency: int, options: Sequence[str] = ()) -> None:
            measure = functools.partial(run.generator, running.port, model, concurrency, options)
            numbers.update(measured(running, model, label, measure))

        for concurrency in SMALL:
            note(f"concurrency {concurrency}", "add_sub", concurrency)
        for label, elements, concurrency, _ in LARGE:
            note(label, "identity", concurrency, ["--shape", f"INPUT0:{elements}"])
        return numbers

    models = built(WORK / "isolated")
    seen = side_by_side(run, once, options=["--isolation=process"], models=models)
    goals = {f"concurrency {each}: inferences/s": Goal(least=least, of_ratio=True) for each, least in SMALL.items()}
    goals |= {f"{label}: inferences/s": Goal(least=least, of_ratio=True) for label, _, _, least in LARGE}
    return [*seen.rows(goals), _computing(run, models)]


def built(repository: Path) -> Path:
    """The repository with the plain models of the cases `binary` and `large`, and one that computes."""
    for model in ("add_sub", "identity"):
        shutil.copytree(MODELS / model, repository / model, dirs_exist_ok=True)
    folder = repository / "busy"
    shutil.copytree(MODELS / "add_sub", folder, dirs_exist_ok=True)
    config = (folder / "config.pbtxt").read_text()
    config = config.replace("max_batch_size: 64\ndynamic_batching {}", "max_batch_size: 1")
    (folder / "config.pbtxt").write_text(config.replace("kind: KIND_CPU", "count: 2 kind: KIND_CPU"))
    (folder / "1" / "model.py").write_text(_BUSY)
    return repository


def _computing(run: Run, models: Path) -> Row:
    """The model that computes, isolated and on threads, with a load that takes little of the processors."""
    seconds = 2 if run.quick else 8
    seen: dict[str, list[dict[str, float]]] = {"process": [], "thread": []}
    for number in range(run.rounds):
        for isolation in seen if number % 2 == 0 else reversed(seen):
            with Naiad().serve(models, f"--isolation={isolation}") as running:
                url = f"http://127.0.0.1:{running.port}/v2/models/busy/infer"
                seen[isolation].append({_COMPUTING: wrk(url, _SCRIPT, 8, seconds).per_second})
    own, threads = (by_label(rounds)[_COMPUTING] for rounds in seen.values())
    return Row(_COMPUTING, own, threads, Goal(least=1.8, of_ratio=True))


CASE = Case(
    "isolated",
    "Models in processes of their own",
    "The models of the cases `binary` and `large`, with `--isolation=process`; the peer's Python backend always has a "
    "process for each instance, and the processor time is that of all processes of a server. The last row holds two "
    "isolated instances against the same on threads of the server.",
    measure,
)
