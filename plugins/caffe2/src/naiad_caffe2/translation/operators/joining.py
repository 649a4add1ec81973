"""Concatenation and splitting of tensors along an axis."""

import numpy as np
from onnx import TensorProto

from naiad_caffe2.translation.operator import MANY, Operator, operator
from naiad_caffe2.translation.reshaping import size_of


@operator("Concat", "DepthConcat", inputs=(1, MANY), outputs=(1, 2))
def _concat(op: Operator) -> list[str]:
    """Also along a new axis (`add_axis`); the second output has the length of each part."""
    parts = list(op.inputs)
    added = op.arguments.flag("add_axis")
    axis = _axis(op, op.rank(parts[0]) + added)
    sizes = [] if len(op.outputs) < 2 else [op.integers(1) if added else size_of(op, part, axis) for part in parts]
    if added:
        parts = [op.emit("Unsqueeze", part, op.integers(axis)) for part in parts]
    result = op.emit("Concat", *parts, axis=axis)
    if not sizes:
        return [result]
    return [result, op.emit("Cast", op.emit("Concat", *sizes, axis=0), to=TensorProto.INT32)]


@operator("Split", "DepthSplit", inputs=(1, 2), outputs=(1, MANY))
def _split(op: Operator) -> list[str]:
    """Into parts of these lengths, which may be an input, or into equal ones."""
    operand, count = op.inputs[0], len(op.outputs)
    axis = _axis(op, op.rank(operand))
    lengths = op.arguments.integers("split")
    if len(op.inputs) == 2:
        sizes_wanted = op.emit("Cast", op.inputs[1], to=TensorProto.INT64)
    else:
        sizes_wanted = op.integers(*(lengths or _equal(op, operand, axis, count)))
        if lengths and len(lengths) != count:
            raise op.error(f"has {len(lengths)} lengths for {count} outputs")
    parts = op.emit_many("Split", [operand, sizes_wanted], count, axis=axis)
    if op.arguments.flag("add_axis"):
        return [op.emit("Squeeze", part, op.integers(axis)) for part in parts]
    return parts


def _equal(op: Operator, operand: str, axis: int, count: int) -> tuple[int, ...]:
    size = op.shape(operand)[axis]
    if not isinstance(size, int):
        raise op.error(f"splits axis {axis}, whose size varies, into equal parts; write the argument 'split'")
    if size % count:
        raise op.error(f"cannot split {size} into {count} equal parts")
    return tuple(map(int, np.full(count, size // count)))


def _axis(op: Operator, rank: int) -> int:
    """The axis that is written, else that of the channels."""
    axis = op.arguments.integer("axis", 1 if op.order() == "NCHW" else rank - 1)
    if not -rank <= axis < rank:
        raise op.error(f"has axis {axis}, and there are {rank} dims")
    return axis % rank
