"""OpenVINO over a model in its own format."""

from collections.abc import Sequence
from pathlib import Path

from frameworks.framework import Call, Framework, Layer, parameters


def _write(path: Path, layers: Sequence[Layer]) -> None:
    import openvino
    import openvino.opset13 as ops

    parameter = ops.parameter([-1, layers[0][0].shape[0]], openvino.Type.f32, name="x")
    parameter.output(0).get_tensor().set_names({"x"})
    last = parameter
    for number, (weights, biases) in enumerate(layers):
        last = ops.add(ops.matmul(last, ops.constant(weights), False, False), ops.constant(biases))
        last = last if number == len(layers) - 1 else ops.relu(last)
    last.output(0).get_tensor().set_names({"y"})
    openvino.save_model(openvino.Model([last], [parameter], "mlp"), path, compress_to_fp16=False)


def _opened(path: Path) -> Call:
    import openvino

    properties = {"INFERENCE_NUM_THREADS": 1, "INFERENCE_PRECISION_HINT": "f32"}
    request = openvino.Core().compile_model(path, "CPU", properties).create_infer_request()
    return lambda array: request.infer({0: array}, share_inputs=True, share_outputs=True)


OPENVINO = Framework(
    "openvino",
    "model.xml",
    f'backend: "openvino"\n{parameters(INFERENCE_NUM_THREADS="1", HINT_BF16="NO")}',
    _write,
    _opened,
    "naiad_openvino",
)
