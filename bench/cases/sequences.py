"""Many sequences at once on an accumulator: what a request of a sequence costs the server."""

import functools
import shutil
from collections.abc import Iterator, Sequence
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
_PLACES = {"": "", "_on_loop": ", on the event loop"}
"""Models of the same files twice, and how their rows are told apart."""
_ON_LOOP = 'parameters { key: "execute_on" value { string_value: "event_loop" } }\n'
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
        for strategy, place, told in _rows():
            model = f"accumulator_{strategy}{place}"
            load_it = functools.partial(run.generator, running.port, model, _CONCURRENCY, _OPTIONS)
            load, cost = with_cost(running, model, load_it)
            counted = running.get(f"/v2/models/{model}/stats")["model_stats"][0]
            numbers[f"{strategy}{told}: inferences/s"] = load.per_second
            numbers[f"{strategy}{told}: p99, ms"] = load.p99_milliseconds
            numbers[f"{strategy}{told}: server's processor time, µs each"] = cost
            numbers[f"{strategy}{told}: requests in a batch"] = counted["inference_count"] / counted["execution_count"]
        return numbers

    seen = side_by_side(run, once, models=_copied(WORK / "sequence-python"), own=built(WORK / "sequence"))
    goal = Goal(least=1.5, of_ratio=True)
    return seen.rows({f"{strategy}{told}: inferences/s": goal for strategy, _, told in _rows()})


def _rows() -> Iterator[tuple[str, str, str]]:
    """Each strategy on a thread, then each on the event loop."""
    for place, told in _PLACES.items():
        for strategy in _STRATEGIES:
            yield strategy, place, told


def _copied(repository: Path) -> Path:
    """The repository with the Python models under every name."""
    for strategy, place, _ in _rows():
        source = SEQUENCE_MODELS / f"accumulator_{strategy}"
        shutil.copytree(source, repository / f"{source.name}{place}", dirs_exist_ok=True)
    return repository


def built(repository: Path) -> Path:
    """The repository with the same accumulators as ONNX models, whose states the server keeps."""
    import onnx

    for strategy, place, _ in _rows():
        folder = repository / f"accumulator_{strategy}{place}"
        (folder / "1").mkdir(parents=True, exist_ok=True)
        onnx.save(_accumulator(), folder / "1" / "model.onnx")
        config = _CONFIG.replace("STRATEGY", _STRATEGIES[strategy])
        (folder / "config.pbtxt").write_text(config + (_ON_LOOP if place else ""))
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
    "state; there, without a backend that has states, a `TritonPythonModel` that keeps them by correlation id. "
    "The rows 'on the event loop' are the same model, configured with `execute_on: event_loop`, which Naiad alone "
    "understands.",
    measure,
)
