"""Normalisation over batches, channels, rows or neighbours."""

import numpy as np

from naiad_caffe2.translation.operator import Operator, operator
from naiad_caffe2.translation.reshaping import like, reshaped


@operator("Softmax", "LogSoftmax")
def _softmax(op: Operator) -> str:
    """Over all dims from `axis` on."""
    operand = op.inputs[0]
    axis = op.axis(operand, op.arguments.integer("axis", 1 if op.rank(operand) > 1 else 0))
    if op.rank(operand) == axis + 1:
        return op.emit(op.type, operand, axis=axis)
    return reshaped(op, op.emit(op.type, op.emit("Flatten", operand, axis=axis), axis=1), like(op, operand))


@operator("LRN", outputs=(1, 2))
def _local_response(op: Operator) -> str:
    last = op.order() == "NHWC"
    operand = op.channels_first(op.inputs[0]) if last else op.inputs[0]
    size = op.arguments.integer("size")
    alpha, beta = op.arguments.number("alpha", 0.0), op.arguments.number("beta", 0.0)
    if size < 1 or size % 2 == 0 or alpha <= 0 or beta <= 0:
        raise op.error(f"has size {size}, alpha {alpha:g}, beta {beta:g}; size must be odd, all must be above 0")
    result = op.emit("LRN", operand, size=size, alpha=alpha, beta=beta, bias=op.arguments.number("bias", 1.0))
    return op.channels_last(result) if last else result


@operator("SpatialBN", inputs=5, outputs=(1, 5))
def _batch_normalization(op: Operator) -> str:
    if not op.arguments.flag("is_test"):
        raise op.error("is made for training: it takes the statistics of each batch unless its argument is_test is 1")
    op.arguments.number("momentum", 0.9)
    op.arguments.integer("num_batches", 1)
    last = op.order() == "NHWC"
    operand = op.channels_first(op.inputs[0]) if last else op.inputs[0]
    epsilon = op.arguments.number("epsilon", 1e-5)
    result = op.emit("BatchNormalization", operand, *op.inputs[1:], epsilon=epsilon)
    return op.channels_last(result) if last else result


@operator("InstanceNorm", inputs=3, outputs=(1, 3))
def _instance_normalization(op: Operator) -> str:
    last = op.order() == "NHWC"
    operand = op.channels_first(op.inputs[0]) if last else op.inputs[0]
    result = op.emit("InstanceNormalization", operand, *op.inputs[1:], epsilon=op.arguments.number("epsilon", 1e-5))
    return op.channels_last(result) if last else result


@operator("LayerNorm", inputs=(1, 3), outputs=(1, 3))
def _layer_normalization(op: Operator) -> list[str]:
    """Over all dims from `axis` on; mean and deviation are outputs as well."""
    operand, *affine = op.inputs
    axis = op.axis(operand, op.arguments.integer("axis", 1))
    result, mean, deviation = _standardised(op, operand, range(axis, op.rank(operand)))
    if op.arguments.flag("elementwise_affine"):
        if len(affine) != 2:
            raise op.error("has elementwise_affine, and not the two inputs for it")
        result = op.emit("Add", op.emit("Mul", result, affine[0]), affine[1])
    kept = [*like(op, operand)[:axis], 1]
    return [result, *(reshaped(op, value, kept) for value in (mean, deviation)[: len(op.outputs) - 1])]


@operator("GroupNorm", inputs=3, outputs=(1, 3))
def _group_normalization(op: Operator) -> str:
    """Over groups of channels."""
    last = op.order() == "NHWC"
    operand = op.channels_first(op.inputs[0]) if last else op.inputs[0]
    groups = op.arguments.integer("group", 32)
    grouped = op.emit("Reshape", operand, op.integers(0, groups, -1))
    result, _, _ = _standardised(op, grouped, (2,))
    result = reshaped(op, result, like(op, operand))
    scale, bias = (op.emit("Reshape", name, op.integers(-1, *[1] * (op.rank(operand) - 2))) for name in op.inputs[1:])
    result = op.emit("Add", op.emit("Mul", result, scale), bias)
    return op.channels_last(result) if last else result


@operator("Normalize", "NormalizeL1")
def _unit_length(op: Operator) -> str:
    """To length 1 along an axis; what has no length stays as it is."""
    operand = op.inputs[0]
    axis = op.axis(operand, op.arguments.integer("axis", -1))
    kind = "ReduceL2" if op.type == "Normalize" else "ReduceL1"
    length = op.emit(kind, operand, op.integers(axis), keepdims=1)
    return op.emit("Div", operand, op.emit("Max", length, op.scalar_like(1e-12, operand)))


@operator("AffineChannel", inputs=3)
def _affine_channel(op: Operator) -> str:
    """Every channel has a factor and a summand."""
    op.arguments.flag("is_learnable")
    operand, *affine = op.inputs
    behind = 0 if op.order() == "NHWC" else op.rank(operand) - 2
    scale, bias = (op.emit("Reshape", name, op.integers(-1, *[1] * behind)) for name in affine)
    return op.emit("Add", op.emit("Mul", operand, scale), bias)


def _standardised(op: Operator, operand: str, axes: range | tuple[int, ...]) -> tuple[str, str, str]:
    """The value with mean 0 and deviation 1 along these axes; its mean and its deviation, with dims of 1."""
    over = op.integers(*axes)
    mean = op.emit("ReduceMean", operand, over, keepdims=1)
    centred = op.emit("Sub", operand, mean)
    variance = op.emit("ReduceMean", op.emit("Mul", centred, centred), over, keepdims=1)
    epsilon = op.graph.constant(np.array(op.arguments.number("epsilon", 1e-5), op.dtype(operand)))
    deviation = op.emit("Sqrt", op.emit("Add", variance, epsilon))
    return op.emit("Div", centred, deviation), mean, deviation
