"""Activation functions and other functions of single elements."""

import numpy as np
from onnx import helper

from naiad_caffe2.translation.datatypes import NAMES, NUMPY_TYPES
from naiad_caffe2.translation.operator import Operator, operator

_SAME = {
    "Abs": "Abs",
    "Acos": "Acos",
    "Asin": "Asin",
    "Atan": "Atan",
    "Ceil": "Ceil",
    "Cos": "Cos",
    "Cosh": "Cosh",
    "Erf": "Erf",
    "Exp": "Exp",
    "Floor": "Floor",
    "Log": "Log",
    "Negative": "Neg",
    "Not": "Not",
    "Reciprocal": "Reciprocal",
    "Relu": "Relu",
    "Sigmoid": "Sigmoid",
    "Sign": "Sign",
    "Sin": "Sin",
    "Sinh": "Sinh",
    "Softplus": "Softplus",
    "Softsign": "Softsign",
    "Sqrt": "Sqrt",
    "Tan": "Tan",
    "Tanh": "Tanh",
}
_COPIES = (
    "Alias",
    "Copy",
    "CopyCPUToGPU",
    "CopyFromCPUInput",
    "CopyGPUToCPU",
    "EnsureCPUOutput",
    "EnsureDense",
    "StopGradient",
)


@operator(*_SAME)
def _same(op: Operator) -> str:
    return op.emit(_SAME[op.type], op.inputs[0])


@operator(*_COPIES)
def _copy(op: Operator) -> str:
    return op.emit("Identity", op.inputs[0])


@operator("Sqr")
def _square(op: Operator) -> str:
    return op.emit("Mul", op.inputs[0], op.inputs[0])


@operator("Cube")
def _cube(op: Operator) -> str:
    return op.emit("Mul", op.inputs[0], op.emit("Mul", op.inputs[0], op.inputs[0]))


@operator("Rsqrt")
def _reciprocal_root(op: Operator) -> str:
    return op.emit("Reciprocal", op.emit("Sqrt", op.inputs[0]))


@operator("Cbrt")
def _cubic_root(op: Operator) -> str:
    x = op.inputs[0]
    root = op.emit("Pow", op.emit("Abs", x), op.scalar_like(1 / 3, x))
    return op.emit("Mul", op.emit("Sign", x), root)


@operator("Swish")
def _swish(op: Operator) -> str:
    return op.emit("Mul", op.inputs[0], op.emit("Sigmoid", op.inputs[0]))


@operator("Gelu")
def _gelu(op: Operator) -> str:
    x = op.inputs[0]
    if op.arguments.flag("fast_gelu"):
        cubed = op.emit("Mul", op.emit("Mul", x, x), op.emit("Mul", x, op.scalar_like(0.044715, x)))
        inner = op.emit("Mul", op.emit("Add", x, cubed), op.scalar_like(np.sqrt(2 / np.pi), x))
        share = op.emit("Tanh", inner)
    else:
        share = op.emit("Erf", op.emit("Mul", x, op.scalar_like(np.sqrt(0.5), x)))
    half = op.emit("Mul", x, op.scalar_like(0.5, x))
    return op.emit("Mul", half, op.emit("Add", share, op.scalar_like(1, x)))


@operator("LeakyRelu")
def _leaky_relu(op: Operator) -> str:
    return op.emit("LeakyRelu", op.inputs[0], alpha=op.arguments.number("alpha", 0.01))


@operator("Elu")
def _elu(op: Operator) -> str:
    return op.emit("Elu", op.inputs[0], alpha=op.arguments.number("alpha", 1.0))


@operator("Selu")
def _selu(op: Operator) -> str:
    alpha, scale = op.arguments.number("alpha", 1.6732632423543772), op.arguments.number("scale", 1.0507009873554805)
    return op.emit("Selu", op.inputs[0], alpha=alpha, gamma=scale)


@operator("HardSigmoid")
def _hard_sigmoid(op: Operator) -> str:
    alpha, beta = op.arguments.number("alpha", 0.2), op.arguments.number("beta", 0.5)
    return op.emit("HardSigmoid", op.inputs[0], alpha=alpha, beta=beta)


@operator("ThresholdedRelu")
def _thresholded_relu(op: Operator) -> str:
    return op.emit("ThresholdedRelu", op.inputs[0], alpha=op.arguments.number("alpha", 1.0))


@operator("ReluN")
def _relu_n(op: Operator) -> str:
    x = op.inputs[0]
    return op.emit("Clip", x, op.scalar_like(0, x), op.scalar_like(op.arguments.number("n", 6.0), x))


@operator("Clip")
def _clip(op: Operator) -> str:
    x = op.inputs[0]
    bounds = [
        op.scalar_like(op.arguments.number(name, 0.0), x) if name in op.arguments else "" for name in ("min", "max")
    ]
    return op.emit("Clip", x, *bounds)


@operator("Logit")
def _logit(op: Operator) -> str:
    x, eps = op.inputs[0], op.arguments.number("eps", 1e-6)
    kept = op.emit("Clip", x, op.scalar_like(eps, x), op.scalar_like(1 - eps, x))
    return op.emit("Log", op.emit("Div", kept, op.emit("Sub", op.scalar_like(1, x), kept)))


@operator("Scale")
def _scale(op: Operator) -> str:
    return op.emit("Mul", op.inputs[0], op.scalar_like(op.arguments.number("scale", 1.0), op.inputs[0]))


@operator("ReplaceNaN")
def _replace_nan(op: Operator) -> str:
    x = op.inputs[0]
    value = op.scalar_like(op.arguments.number("value", 0.0), x)
    return op.emit("Where", op.emit("IsNaN", x), value, x)


@operator("PRelu", inputs=2)
def _prelu(op: Operator) -> str:
    """One slope for all, or one for each channel."""
    x, slope = op.inputs
    if op.order() == "NCHW" and op.shape(slope) != (1,):
        rank = op.rank(x)
        slope = op.emit("Reshape", slope, op.integers(-1, *[1] * max(0, rank - 2)))
    return op.emit("PRelu", x, slope)


@operator("Dropout", outputs=(1, 2))
def _dropout(op: Operator) -> str:
    """Nothing, outside of training."""
    op.arguments.number("ratio", 0.5)
    if not op.arguments.flag("is_test"):
        raise op.error("is made for training: it drops values at random unless its argument is_test is 1")
    return op.emit("Identity", op.inputs[0])


@operator("Cast")
def _cast(op: Operator) -> str:
    argument = op.arguments.raw("to")
    op.arguments.raw("from_type")
    if argument is None:
        raise op.error("says nothing of the type to cast to, in its argument 'to'")
    number = NAMES.get(op.arguments.text("to").upper(), 0) if argument.HasField("s") else op.arguments.integer("to")
    return _cast_to(op, number)


@operator("FloatToHalf", "HalfToFloat")
def _half(op: Operator) -> str:
    return _cast_to(op, 12 if op.type == "FloatToHalf" else 1)


def _cast_to(op: Operator, number: int) -> str:
    if number not in NUMPY_TYPES:
        raise op.error(f"casts to a type that is none of {', '.join(NAMES)}")
    return op.emit("Cast", op.inputs[0], to=int(helper.np_dtype_to_tensor_dtype(np.dtype(NUMPY_TYPES[number]))))
