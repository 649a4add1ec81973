"""Operators that change or return the shape of a tensor."""

import numpy as np
from onnx import TensorProto

from naiad_caffe2.translation.operator import Operator, operator
from naiad_caffe2.translation.reshaping import like, reshaped


@operator("Reshape", inputs=(1, 2), outputs=(1, 2))
def _reshape(op: Operator) -> list[str]:
    """0 keeps a dim, -1 is what is left; the second output is the shape that was."""
    if len(op.inputs) == 2:
        if "shape" in op.arguments:
            raise op.error("has a shape as an input and as an argument")
        value = op.graph.value(op.inputs[1])
        if value is None:
            sizes_wanted = op.emit("Cast", op.inputs[1], to=TensorProto.INT64)
        else:
            sizes_wanted = op.integers(*map(int, value.ravel()))
    else:
        sizes_wanted = op.integers(*op.arguments.integers("shape"))
    old = [op.emit("Shape", op.inputs[0])] if len(op.outputs) > 1 else []
    return [op.emit("Reshape", op.inputs[0], sizes_wanted), *old]


@operator("ResizeLike", inputs=2)
def _resize_like(op: Operator) -> str:
    return op.emit("Reshape", op.inputs[0], op.emit("Shape", op.inputs[1]))


@operator("Flatten")
def _flatten(op: Operator) -> str:
    axis = op.arguments.integer("axis", 1)
    return op.emit("Flatten", op.inputs[0], axis=axis)


@operator("FlattenToVec")
def _flatten_to_vector(op: Operator) -> str:
    return op.emit("Reshape", op.inputs[0], op.integers(-1))


@operator("Squeeze")
def _squeeze(op: Operator) -> str:
    return op.emit("Squeeze", op.inputs[0], op.integers(*_dims(op)))


@operator("ExpandDims")
def _expand_dims(op: Operator) -> str:
    """At these positions of the result's shape."""
    return op.emit("Unsqueeze", op.inputs[0], op.integers(*_dims(op)))


@operator("Transpose")
def _transpose(op: Operator) -> str:
    axes = op.arguments.integers("axes")
    return op.emit("Transpose", op.inputs[0], **({"perm": list(axes)} if axes else {}))


@operator("NCHW2NHWC")
def _to_channels_last(op: Operator) -> str:
    return op.channels_last(op.inputs[0])


@operator("NHWC2NCHW")
def _to_channels_first(op: Operator) -> str:
    return op.channels_first(op.inputs[0])


@operator("Shape")
def _shape(op: Operator) -> str:
    result = op.emit("Shape", op.inputs[0])
    axes = op.arguments.integers("axes")
    return op.emit("Gather", result, op.integers(*axes), axis=0) if axes else result


@operator("Size")
def _size(op: Operator) -> str:
    return op.emit("Reshape", op.emit("Size", op.inputs[0]), op.integers(1))


@operator("MergeDim")
def _merge_dim(op: Operator) -> str:
    """The first two dims as one."""
    rank = op.rank(op.inputs[0])
    if rank < 2:
        raise op.error("merges two dims, and its input has fewer")
    return reshaped(op, op.inputs[0], [-1, *like(op, op.inputs[0])[2:]])


@operator("PrependDim")
def _prepend_dim(op: Operator) -> str:
    """The first dim as two, the first of them of that size."""
    return reshaped(op, op.inputs[0], [op.arguments.integer("dim_size", 1), -1, *like(op, op.inputs[0])[1:]])


@operator("Tile", inputs=(1, 3))
def _tile(op: Operator) -> str:
    """Copies behind each other along an axis; their number and the axis may be inputs that never change."""
    numbers = [op.arguments.integer("tiles", 1), op.arguments.integer("axis")]
    for index, name in enumerate(op.inputs[1:]):
        value = op.graph.value(name)
        if value is None:
            raise op.error("takes its number of tiles or its axis from values that are computed")
        numbers[index] = int(value.ravel()[0])
    tiles, axis = numbers
    repeats = np.ones(op.rank(op.inputs[0]), np.int64)
    repeats[op.axis(op.inputs[0], axis)] = tiles
    return op.emit("Tile", op.inputs[0], op.integers(*map(int, repeats)))


def _dims(op: Operator) -> tuple[int, ...]:
    dims = op.arguments.integers("dims")
    if not dims:
        raise op.error("needs its argument 'dims'")
    return tuple(sorted(dims))
