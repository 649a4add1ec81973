"""ONNX Runtime over a graph of Gemm and Relu."""

from collections.abc import Sequence
from pathlib import Path

from frameworks.framework import Call, Framework, Layer, parameters


def _write(path: Path, layers: Sequence[Layer]) -> None:
    import onnx
    from onnx import TensorProto, helper, numpy_helper

    nodes, weights, last = [], [], "x"
    for number, layer in enumerate(layers):
        final = number == len(layers) - 1
        names = [f"w{number}", f"b{number}"]
        weights += [numpy_helper.from_array(values, name) for values, name in zip(layer, names, strict=True)]
        sums = "y" if final else f"sums{number}"
        nodes.append(helper.make_node("Gemm", [last, *names], [sums]))
        if not final:
            last = f"hidden{number}"
            nodes.append(helper.make_node("Relu", [sums], [last]))
    graph = helper.make_graph(
        nodes,
        "mlp",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["batch", layers[0][0].shape[0]])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["batch", layers[-1][0].shape[1]])],
        weights,
    )
    # what every ONNX Runtime of the last years reads
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9), path)


def _opened(path: Path) -> Call:
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
    return lambda array: session.run(None, {"x": array})


ONNX = Framework(
    "onnx",
    "model.onnx",
    f'backend: "onnxruntime"\n{parameters(intra_op_thread_count="1")}',
    _write,
    _opened,
    "naiad_onnx",
)
