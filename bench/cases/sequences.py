"""Many sequences at once on an accumulator: what a request of a sequence costs the server."""

import functools
import itertools
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from cases.case import Case
from load import Load, with_cost, wrk
from report import Goal, Row
from rounds import SEQUENCE_MODELS, Run, side_by_side
from servers import WORK, Running

if TYPE_CHECKING:
    import onnx

_CONCURRENCY = 64
_LENGTH = 20
_OPTIONS = ("--sequence-length", str(_LENGTH), "--sequence-length-variation", "0")
_STRATEGIES = {"direct": "direct {}", "oldest": f"oldest {{ max_candidate_sequences: {_CONCURRENCY} }}"}
_SCRIPT = Path(__file__).resolve().parent.parent / "sequences.lua"
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
    parts = itertools.count(1)  # of the ids of sequences, which are not used twice

    def once(running: Running) -> dict[str, float]:
        numbers = {}
        for strategy in _STRATEGIES:
            model = f"accumulator_{strategy}"
            url = f"http://127.0.0.1:{running.port}/v2/models/{model}/infer"
            generators: dict[str, Callable[[], Load]] = {
                "": functools.partial(run.generator, running.port, model, _CONCURRENCY, _OPTIONS),
                ", wrk": lambda url=url: wrk(url, _SCRIPT, _CONCURRENCY, 4, str(next(parts)), threads=_CONCURRENCY),
            }
            for message, load_it in generators.items():
                before = _counted(running, model)
                load, cost = with_cost(running, model, load_it)
                inferences, executions = (new - old for new, old in zip(_counted(running, model), before, strict=True))
                numbers[f"{strategy}{message}: inferences/s"] = load.per_second
                numbers[f"{strategy}{message}: p99, ms"] = load.p99_milliseconds
                numbers[f"{strategy}{message}: server's processor time, µs each"] = cost
                numbers[f"{strategy}{message}: requests in a batch"] = inferences / executions
        return numbers

    seen = side_by_side(run, once, models=SEQUENCE_MODELS, own=built(WORK / "sequence"))
    goal = Goal(least=1.5, of_ratio=True)
    return seen.rows(
        {f"{strategy}{message}: inferences/s": goal for strategy in _STRATEGIES for message in ("", ", wrk")}
    )


def _counted(running: Running, model: str) -> tuple[int, int]:
    """How many inferences and how many executions there were so far."""
    counted = running.get(f"/v2/models/{model}/stats")["model_stats"][0]
    return counted["inference_count"], counted["execution_count"]


def built(repository: Path) -> Path:
    """The repository with the same accumulators as ONNX models, whose states the server keeps."""
    import onnx

    for strategy, fields in _STRATEGIES.items():
        folder = repository / f"accumulator_{strategy}"
        (folder / "1").mkdir(parents=True, exist_ok=True)
        onnx.save(_accumulator(), folder / "1" / "model.onnx")
        (folder / "config.pbtxt").write_text(_CONFIG.replace("STRATEGY", fields))
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
    "perf_analyzer over HTTP on the same machine; in the rows 'wrk' wrk with a thread and a connection a sequence, "
    "for perf_analyzer takes more of the two processors for a request than either server. Here it is an ONNX model "
    "whose sums the server keeps as implicit "
    "state; there, without a backend that has states, a `TritonPythonModel` that keeps them by correlation id.",
    measure,
)
