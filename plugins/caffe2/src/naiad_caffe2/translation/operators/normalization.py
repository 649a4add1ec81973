"""Bringing values to a common scale: over batches, channels, rows, neighbours."""

import numpy as np

from naiad_caffe2.translation.operator import Operator, operator
from naiad_caffe2.translation.reshaping import like, reshaped


@operator("Softmax", "LogSoftmax")
def _softmax(op: Operator) -> str:
    """Over all dims from `axis` on."""
    given = op.inputs[0]
    axis = op.axis(given, op.arguments.integer("axis", 1 if op.rank(given) > 1 else 0))
    if op.rank(given) == axis + 1:
        return op.emit(op.type, given, axis=axis)
    return reshaped(op, op.emit(op.type, op.emit("Flatten", given, axis=axis), axis=1), like(op, given))


@operator("LRN", outputs=(1, 2))
def _local_response(op: Operator) -> str:
    last = op.order() == "NHWC"
    given = op.channels_first(op.inputs[0]) if last else op.inputs[0]
    size = op.arguments.integer("size")
    alpha, beta = op.arguments.number("alpha", 0.0), op.arguments.number("beta", 0.0)
    if size < 1 or size % 2 == 0 or alpha <= 0 or beta <= 0:
        raise op.error(f"has size {size}, alpha {alpha:g}, beta {beta:g}; size must be odd, all must be above 0")
    made = op.emit("LRN", given, size=size, alpha=alpha, beta=beta, bias=op.arguments.number("bias", 1.0))
    return op.channels_last(made) if last else made


@operator("SpatialBN", inputs=5, outputs=(1, 5))
def _batch_normalization(op: Operator) -> str:
    if not op.arguments.flag("is_test"):
        raise op.error("is made for training: it takes the statistics of each batch unless its argument is_test is 1")
    op.arguments.number("momentum", 0.9)
    op.arguments.integer("num_batches", 1)
    last = op.order() == "NHWC"
    given = op.channels_first(op.inputs[0]) if last else op.inputs[0]
    epsilon = op.arguments.number("epsilon", 1e-5)
    made = op.emit("BatchNormalization", given, *op.inputs[1:], epsilon=epsilon)
    return op.channels_last(made) if last else made


@operator("InstanceNorm", inputs=3, outputs=(1, 3))
def _instance_normalization(op: Operator) -> str:
    last = op.order() == "NHWC"
    given = op.channels_first(op.inputs[0]) if last else op.inputs[0]
    made = op.emit("InstanceNormalization", given, *op.inputs[1:], epsilon=op.arguments.number("epsilon", 1e-5))
    return op.channels_last(made) if last else made


@operator("LayerNorm", inputs=(1, 3), outputs=(1, 3))
def _layer_normalization(op: Operator) -> list[str]:
    """Over all dims from `axis` on; mean and deviation are outputs as well."""
    given, *affine = op.inputs
    axis = op.axis(given, op.arguments.integer("axis", 1))
    made, mean, deviation = _standardised(op, given, range(axis, op.rank(given)))
    if op.arguments.flag("elementwise_affine"):
        if len(affine) != 2:
            raise op.error("has elementwise_affine, and not the two inputs for it")
        made = op.emit("Add", op.emit("Mul", made, affine[0]), affine[1])
    kept = [*like(op, given)[:axis], 1]
    return [made, *(reshaped(op, value, kept) for value in (mean, deviation)[: len(op.outputs) - 1])]


@operator("GroupNorm", inputs=3, outputs=(1, 3))
def _group_normalization(op: Operator) -> str:
    """Over groups of channels."""
    last = op.order() == "NHWC"
    given = op.channels_first(op.inputs[0]) if last else op.inputs[0]
    groups = op.arguments.integer("group", 32)
    grouped = op.emit("Reshape", given, op.integers(0, groups, -1))
    made, _, _ = _standardised(op, grouped, (2,))
    made = reshaped(op, made, like(op, given))
    scale, bias = (op.emit("Reshape", name, op.integers(-1, *[1] * (op.rank(given) - 2))) for name in op.inputs[1:])
    made = op.emit("Add", op.emit("Mul", made, scale), bias)
    return op.channels_last(made) if last else made


@operator("Normalize", "NormalizeL1")
def _unit_length(op: Operator) -> str:
    """To length 1 along an axis; what has no length stays as it is."""
    given = op.inputs[0]
    axis = op.axis(given, op.arguments.integer("axis", -1))
    kind = "ReduceL2" if op.type == "Normalize" else "ReduceL1"
    length = op.emit(kind, given, op.integers(axis), keepdims=1)
    return op.emit("Div", given, op.emit("Max", length, op.scalar_like(1e-12, given)))


@operator("AffineChannel", inputs=3)
def _affine_channel(op: Operator) -> str:
    """Every channel has a factor and a summand."""
    op.arguments.flag("is_learnable")
    given, *affine = op.inputs
    behind = 0 if op.order() == "NHWC" else op.rank(given) - 2
    scale, bias = (op.emit("Reshape", name, op.integers(-1, *[1] * behind)) for name in affine)
    return op.emit("Add", op.emit("Mul", given, scale), bias)


def _standardised(op: Operator, given: str, axes: range | tuple[int, ...]) -> tuple[str, str, str]:
    """The value with mean 0 and deviation 1 along these axes; its mean and its deviation, with dims of 1."""
    over = op.integers(*axes)
    mean = op.emit("ReduceMean", given, over, keepdims=1)
    centred = op.emit("Sub", given, mean)
    variance = op.emit("ReduceMean", op.emit("Mul", centred, centred), over, keepdims=1)
    epsilon = op.graph.constant(np.array(op.arguments.number("epsilon", 1e-5), op.dtype(given)))
    deviation = op.emit("Sqrt", op.emit("Add", variance, epsilon))
    return op.emit("Div", centred, deviation), mean, deviation
