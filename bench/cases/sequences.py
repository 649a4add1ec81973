"""Many sequences at once on an accumulator: what a request of a sequence costs the server."""

import functools
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from cases.case import Case
from load import with_cost
from report import Goal, Row
from rounds import SEQUENCE_MODELS, Run, side_by_side
from servers import WORK, Running

if TYPE_CHECKING:
    import onnx

_CONCURRENCY = 64
_LENGTH = 20
_OPTIONS = ("--sequence-length", str(_LENGTH), "--sequence-length-variation", "0")
_STRATEGIES = {"direct": "direct {}", "oldest": f"oldest {{ max_candidate_sequences: {_CONCURRENCY} }}"}
_CONFIG = """backend: "onnxruntime"
max_batch_size: 64
instance_group [ { kind: KIND_CPU count: 1 } ]
parameters { key: "intra_op_thread_count" value { string_value: "1" } }
input [ { name: "INPUT" data_type: TYPE_FP32 dims: [ 1 ] } ]
output [ { name: "OUTPUT" data_type: TYPE_FP32 dims: [ 1 ] } ]
sequence_batching {
  STRATEGY
  state [ {
    input_name: "INPUT_STATE" output_name: "OUTPUT_STATE" data_type: TYPE_FP32 dims: [ 1 ]
    initial_state { name: "zero" data_type: TYPE_FP32 dims: [ 1 ] zero_data: true }
  } ]
}
"""


def measure(run: Run) -> Sequence[Row]:
    def once(running: Running) -> dict[str, float]:
        numbers = {}
        for strategy in _STRATEGIES:
            model = f"accumulator_{strategy}"
            load_it = functools.partial(run.generator, running.port, model, _CONCURRENCY, _OPTIONS)
            load, cost = with_cost(running, model, load_it)
            counted = running.get(f"/v2/models/{model}/stats")["model_stats"][0]
            numbers[f"{strategy}: inferences/s"] = load.per_second
            numbers[f"{strategy}: p99, ms"] = load.p99_milliseconds
            numbers[f"{strategy}: server's processor time, µs each"] = cost
            numbers[f"{strategy}: requests in a batch"] = counted["inference_count"] / counted["execution_count"]
        return numbers

    seen = side_by_side(run, once, models=SEQUENCE_MODELS, own=built(WORK / "sequence"))
    return seen.rows({f"{name}: inferences/s": Goal(least=1.5, of_ratio=True) for name in _STRATEGIES})


def built(repository: Path) -> Path:
    """The repository with the same accumulators as ONNX models, whose states the server keeps."""
    import onnx

    for name, strategy in _STRATEGIES.items():
        folder = repository / f"accumulator_{name}"
        (folder / "1").mkdir(parents=True, exist_ok=True)
        onnx.save(_accumulator(), folder / "1" / "model.onnx")
        (folder / "config.pbtxt").write_text(_CONFIG.replace("STRATEGY", strategy))
    return repository


def _accumulator() -> "onnx.ModelProto":
    from onnx import TensorProto, helper

    def tensors(*names: str) -> "list[onnx.ValueInfoProto]":
        return [helper.make_tensor_value_info(name, TensorProto.FLOAT, ["batch", 1]) for name in names]

    nodes = [
        helper.make_node("Add", ["INPUT", "INPUT_STATE"], ["OUTPUT_STATE"]),
        helper.make_node("Identity", ["OUTPUT_STATE"], ["OUTPUT"]),
    ]
    graph = helper.make_graph(nodes, "sums", tensors("INPUT", "INPUT_STATE"), tensors("OUTPUT", "OUTPUT_STATE"))
    # what every ONNX Runtime of the last years reads
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)


CASE = Case(
    "sequence",
    "Sequences with implicit state",
    f"An accumulator, `max_batch_size: 64`, one instance, {_CONCURRENCY} sequences of {_LENGTH} requests at once; "
    "perf_analyzer over HTTP on the same machine. Here it is an ONNX model whose sums the server keeps as implicit "
    "state; there, without a backend that has states, a `TritonPythonModel` that keeps them by correlation id.",
    measure,
)
