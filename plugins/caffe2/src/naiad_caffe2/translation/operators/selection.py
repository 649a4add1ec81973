"""Selection of elements: slice, gather, top k, arg max and one-hot."""

import numpy as np
from onnx import TensorProto

from naiad_caffe2.translation.operator import Operator, operator

_END = 2**31 - 1


@operator("Slice", inputs=(1, 3))
def _cut(op: Operator) -> str:
    """From `starts` to `ends`, one for each of the first axes; -1 is behind the last element, unlike in Python."""
    if len(op.inputs) == 2:
        raise op.error("has starts as an input, and no ends")
    if len(op.inputs) == 3:
        bounds = [_constant(op, name) for name in op.inputs[1:]]
    else:
        bounds = [op.arguments.integers("starts"), op.arguments.integers("ends")]
    if not bounds[0] or len(bounds[0]) != len(bounds[1]):
        raise op.error("needs as many starts as ends, and one at least")
    starts, ends = (op.integers(*map(_from_behind, side)) for side in bounds)
    return op.emit("Slice", op.inputs[0], starts, ends, op.integers(*range(len(bounds[0]))))


@operator("Gather", "BatchGather", inputs=2)
def _gather(op: Operator) -> str:
    if op.arguments.flag("match_outer"):
        raise op.error("has match_outer, which naiad-caffe2 does not know")
    op.arguments.flag("wrap_indices")
    axis = 1 if op.type == "BatchGather" else op.axis(op.inputs[0], op.arguments.integer("axis"))
    return op.emit("Gather", op.inputs[0], op.inputs[1], axis=axis)


@operator("TopK", inputs=(1, 2), outputs=(2, 3))
def _largest(op: Operator) -> list[str]:
    """The k largest in falling order, and where they are."""
    operand = op.inputs[0]
    if len(op.inputs) == 2:
        k = op.emit("Reshape", op.emit("Cast", op.inputs[1], to=TensorProto.INT64), op.integers(1))
    else:
        k = op.integers(op.arguments.integer("k", 1))
    axis = op.axis(operand, op.arguments.integer("axis", -1))
    return op.emit_many("TopK", [operand, k], 2, axis=axis)


@operator("ArgMax", "ArgMin")
def _extreme_index(op: Operator) -> str:
    axis = op.axis(op.inputs[0], op.arguments.integer("axis", -1))
    return op.emit(op.type, op.inputs[0], axis=axis, keepdims=int(op.arguments.flag("keepdims", True)))


@operator("OneHot", inputs=2)
def _one_hot(op: Operator) -> str:
    """FP32[n, size] with a 1 in each row, at the index."""
    indices, size = op.inputs
    first, step = op.scalar_like(0, indices), op.scalar_like(1, indices)
    columns = op.emit("Range", first, _scalar(op, size, indices), step)
    column = op.emit("Reshape", indices, op.integers(-1, 1))
    return op.emit("Cast", op.emit("Equal", column, columns), to=TensorProto.FLOAT)


def _scalar(op: Operator, name: str, like: str) -> str:
    value = op.emit("Reshape", name, op.integers())
    return op.emit("Cast", value, to=op.graph.element_type(like))


def _constant(op: Operator, name: str) -> tuple[int, ...]:
    value: np.ndarray | None = op.graph.value(name)
    if value is None:
        raise op.error("takes its bounds from values that are computed")
    return tuple(map(int, value.ravel()))


def _from_behind(bound: int) -> int:
    """As ONNX counts, where -1 is the last element."""
    if bound >= 0:
        return bound
    return _END if bound == -1 else bound + 1
