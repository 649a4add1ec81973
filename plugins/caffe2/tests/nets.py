"""Nets of Caffe2 made in code: operators one behind the other, and weights that an init net fills in."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from onnx import helper

from naiad_caffe2.messages import message_class
from naiad_caffe2.net import GivenInput, Translated, translate
from naiad_caffe2.sessions import open_session
from naiad_kit.backends.onnx_runtime import SessionSettings

FILLS = {
    "float32": ("GivenTensorFill", "floats"),
    "float64": ("GivenTensorDoubleFill", "floats"),
    "int32": ("GivenTensorIntFill", "ints"),
    "int64": ("GivenTensorInt64Fill", "ints"),
    "bool": ("GivenTensorBoolFill", "ints"),
}


class Net:
    """A net and its init net, which grow together."""

    def __init__(self, *inputs: str) -> None:
        self.net: Any = message_class("NetDef")(name="test", external_input=inputs)
        self.init: Any = message_class("NetDef")(name="test_init")

    def op(self, kind: str, inputs: Sequence[str] | str, outputs: Sequence[str] | str, **arguments: Any) -> str:
        """An operator; the name of its first output."""
        inputs = inputs.split() if isinstance(inputs, str) else inputs
        outputs = outputs.split() if isinstance(outputs, str) else outputs
        add_operator(self.net, kind, inputs, outputs, arguments)
        return outputs[0]

    def weights(self, name: str, array: Any) -> str:
        """A blob that the init net fills."""
        array = np.asarray(array)
        kind, field = FILLS[array.dtype.name]
        operator = self.init.op.add(type=kind, output=[name])
        operator.arg.add(name="shape", ints=array.shape)
        operator.arg.add(name="values", **{field: array.ravel().tolist()})
        self.net.external_input.append(name)
        return name

    def gives(self, *outputs: str) -> "Net":
        """The same, with these external outputs."""
        self.net.external_output.extend(outputs)
        return self

    def translated(self, **feeds: np.ndarray) -> Translated:
        """The model that takes arrays like these, the first dim of each of any size."""
        return translate(self.net, self.init, {name: _given_fill(name, array) for name, array in feeds.items()})

    def run(self, **feeds: np.ndarray) -> dict[str, np.ndarray]:
        """What the net gives for these inputs."""
        return run(self.translated(**feeds), feeds)

    def write(self, path: Path) -> None:
        """Both files of a model."""
        path.write_bytes(self.net.SerializeToString())
        path.with_name(f"init_{path.name}").write_bytes(self.init.SerializeToString())


def add_operator(
    net: Any, kind: str, inputs: Sequence[str], outputs: Sequence[str], arguments: Mapping[str, Any]
) -> None:
    """Add an operator to a net; whole numbers, numbers, texts, and lists of them are arguments."""
    operator = net.op.add(type=kind, input=inputs, output=outputs)
    for name, value in arguments.items():
        argument = operator.arg.add(name=name)
        if isinstance(value, list | tuple):
            field = "floats" if any(isinstance(each, float) for each in value) else "ints"
            getattr(argument, field).extend(value)
        elif isinstance(value, str):
            argument.s = value.encode()
        elif isinstance(value, float):
            argument.f = value
        else:
            argument.i = int(value)


def run(translated: Translated, feeds: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """What ONNX Runtime makes of a translated net."""
    model, weights = translated.model(translated.outputs)
    session = open_session(model, weights, "m", SessionSettings(intra_op_threads=1), ("CPU", 0))
    values = session.run([output.value for output in translated.outputs.values()], dict(feeds))
    return dict(zip(translated.outputs, values, strict=True))


def one(kind: str, *inputs: np.ndarray, constants: Sequence[int] = (), outputs: int = 1, **arguments: Any) -> Any:
    """What one operator gives for these inputs: an array, or a list of several. Those at `constants` are weights."""
    names = "abcdefgh"[: len(inputs)]
    sent = dict(zip(names, inputs, strict=True))
    weights = {names[index]: sent.pop(names[index]) for index in constants}
    net = Net(*sent)
    for name, array in weights.items():
        net.weights(name, array)
    output_names = [f"out{index}" for index in range(outputs)]
    net.op(kind, list(names), output_names, **arguments)
    actual = list(net.gives(*output_names).run(**sent).values())
    return actual[0] if outputs == 1 else actual


def _given_fill(name: str, array: np.ndarray) -> GivenInput:
    shape = (f"{name}.0", *array.shape[1:]) if array.ndim else ()
    return GivenInput(int(helper.np_dtype_to_tensor_dtype(array.dtype)), shape)
