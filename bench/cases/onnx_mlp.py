"""An ONNX model under load, against the framework alone: what serving takes away from computing."""

import itertools
import json
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from cases.case import Case
from report import Goal, Row
from rounds import Numbers, Run, by_label
from servers import WORK, Naiad, Running

if TYPE_CHECKING:
    import onnx

_SIZES = (512, 2048, 2048, 1000)
_ALONE = Path(__file__).resolve().parent.parent / "session_alone.py"
CONCURRENCY = 64
_CONFIG = """backend: "onnxruntime"
max_batch_size: 64
dynamic_batching {}
instance_group [ { kind: KIND_CPU count: 1 } ]
parameters { key: "intra_op_thread_count" value { string_value: "1" } }
input [ { name: "x" data_type: TYPE_FP32 dims: [ 512 ] } ]
output [ { name: "y" data_type: TYPE_FP32 dims: [ 1000 ] } ]
"""


def measure(run: Run) -> Sequence[Row]:
    repository = WORK / "onnx"
    model = built(repository / "mlp")
    served: list[Numbers] = []
    alone: list[Numbers] = []
    for _ in range(run.rounds):
        alone.append({"inferences/s": _alone(model, seconds=1.0 if run.quick else 5.0)})
        with Naiad().serve(repository) as running:
            served.append(_load(run, running))
    seen, reference = by_label(served), by_label(alone)
    label = f"concurrency {CONCURRENCY}: inferences/s"
    return [
        Row(label, seen["inferences/s"], reference["inferences/s"], Goal(least=0.65, of_ratio=True)),
        Row(f"concurrency {CONCURRENCY}: p99, ms", seen["p99, ms"]),
        Row("requests in a batch", seen["batch"]),
    ]


def _load(run: Run, running: Running) -> dict[str, float]:
    load = run.generator(running.port, "mlp", CONCURRENCY)
    counted = running.get("/v2/models/mlp/stats")["model_stats"][0]
    batch = counted["inference_count"] / counted["execution_count"]
    return {"inferences/s": load.per_second, "p99, ms": load.p99_milliseconds, "batch": batch}


def _alone(model: Path, seconds: float) -> float:
    command = [sys.executable, str(_ALONE), str(model), "--batch", "32", "--seconds", str(seconds)]
    ended = subprocess.run(command, check=True, capture_output=True, text=True)
    return float(json.loads(ended.stdout)["inferences_per_second"])


def built(folder: Path, more: str = "") -> Path:
    """Write the model with weights from a fixed seed, unless it is there already; its file.

    `more` is added to its configuration.
    """
    path = folder / "1" / "model.onnx"
    if not path.exists():
        import onnx

        path.parent.mkdir(parents=True, exist_ok=True)
        onnx.save(_mlp(), path)
    (folder / "config.pbtxt").write_text(_CONFIG + more)
    return path


def _mlp() -> "onnx.ModelProto":
    import numpy as np
    from onnx import TensorProto, helper, numpy_helper

    chance = np.random.default_rng(7)
    nodes, weights, last = [], [], "x"
    for layer, (width, height) in enumerate(itertools.pairwise(_SIZES)):
        final = layer == len(_SIZES) - 2
        for name, values in (
            ("w", chance.standard_normal((width, height)) / np.sqrt(width)),
            ("b", chance.standard_normal(height)),
        ):
            weights.append(numpy_helper.from_array(values.astype(np.float32), f"{name}{layer}"))
        sums = "y" if final else f"sums{layer}"
        nodes.append(helper.make_node("Gemm", [last, f"w{layer}", f"b{layer}"], [sums]))
        if not final:
            last = f"hidden{layer}"
            nodes.append(helper.make_node("Relu", [sums], [last]))
    graph = helper.make_graph(
        nodes,
        "mlp",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["batch", _SIZES[0]])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["batch", _SIZES[-1]])],
        weights,
    )
    # what every ONNX Runtime of the last years reads
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)


CASE = Case(
    "onnx",
    "ONNX Runtime under load",
    "An MLP 512-2048-2048-1000 (FP32), `max_batch_size: 64`, `dynamic_batching {}`, one instance with one thread; "
    "perf_analyzer over HTTP on the same machine. Beside it, in the same round, `session.run` alone at batch 32 in one "
    "thread.",
    measure,
    "session.run alone",
)
