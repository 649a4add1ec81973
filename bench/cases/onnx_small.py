"""Small binary tensors for an ONNX model over HTTP and gRPC, beside the peer's Python model of the same function."""

import functools
from collections.abc import Sequence
from pathlib import Path

from cases.case import Case
from load import measured
from report import Goal, Row
from rounds import MODELS, Run, side_by_side
from servers import WORK, Running

GOALS = {"HTTP": {1: 2.1, 16: 2.0, 64: 2.1}, "gRPC": {1: 1.8, 16: 2.1, 64: 2.0}}
"""The ratio of inferences/s to reach, by protocol and concurrency."""
_MOST_MICROSECONDS = {"HTTP": 35, "gRPC": 45}
"""The processor time of the server for a call, at concurrency 16."""


def measure(run: Run) -> Sequence[Row]:
    def once(running: Running) -> dict[str, float]:
        numbers: dict[str, float] = {}
        for protocol, goals in GOALS.items():
            port = running.ports.http if protocol == "HTTP" else running.ports.grpc
            options = () if protocol == "HTTP" else ("--max-threads", "8")
            for concurrency in goals:
                measure = functools.partial(
                    run.generator, port, "add_sub", concurrency, options, protocol=protocol.lower()
                )
                numbers |= measured(running, "add_sub", f"{protocol}, concurrency {concurrency}", measure)
        return numbers

    rows = {}
    for protocol, goals in GOALS.items():
        label = f"{protocol}, concurrency 16: server's processor time, µs each"
        rows[label] = Goal(most=_MOST_MICROSECONDS[protocol])
        for concurrency, least in goals.items():
            rows[f"{protocol}, concurrency {concurrency}: inferences/s"] = Goal(least=least, of_ratio=True)
    return side_by_side(run, once, own=write_models(WORK / "onnx_small")).rows(rows)


def write_models(repository: Path) -> Path:
    """Write the add/sub model as a graph of ONNX, with the configuration of the Python model; the repository."""
    import onnx
    from onnx import TensorProto, helper

    path = repository / "add_sub" / "1" / "model.onnx"
    path.parent.mkdir(parents=True, exist_ok=True)
    tensors = {
        name: helper.make_tensor_value_info(name, TensorProto.FLOAT, ["batch", 16])
        for name in ("INPUT0", "INPUT1", "OUTPUT0", "OUTPUT1")
    }
    inputs = ["INPUT0", "INPUT1"]
    graph = helper.make_graph(
        [helper.make_node("Add", inputs, ["OUTPUT0"]), helper.make_node("Sub", inputs, ["OUTPUT1"])],
        "add_sub",
        [tensors[name] for name in inputs],
        [tensors["OUTPUT0"], tensors["OUTPUT1"]],
    )
    # what every ONNX Runtime of the last years reads
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9), path)
    text = (MODELS / "add_sub" / "config.pbtxt").read_text()
    threads = 'parameters { key: "intra_op_thread_count" value { string_value: "1" } }\n'
    (repository / "add_sub" / "config.pbtxt").write_text(text.replace('"python"', '"onnxruntime"') + threads)
    return repository


CASE = Case(
    "onnx-small",
    "An ONNX model with small binary tensors",
    "The add/sub function as a graph of ONNX with the configuration of `binary`, and the load of `binary` and `grpc`. "
    "The other server runs the same function as a `TritonPythonModel`.",
    measure,
)
