"""Reshape with dims that are copied from other tensors, of which some vary."""

from collections.abc import Sequence

from naiad_caffe2.translation.operator import Operator

Dim = int | tuple[str, int]
"""A size, or the size of a value along an axis."""


def reshaped(op: Operator, value: str, dims: Sequence[Dim]) -> str:
    """The value with these dims; one of them may be -1, for whatever is left."""
    sizes = [_known(op, dim) for dim in dims]
    if sizes.count(None) <= 1 and -1 not in sizes:
        return op.emit("Reshape", value, op.integers(*(-1 if size is None else size for size in sizes)))
    if None not in sizes:
        return op.emit("Reshape", value, op.integers(*(size for size in sizes if size is not None)))
    kept = [_kept(op, value, index, dim) for index, dim in enumerate(dims)]
    if None not in kept:
        return op.emit("Reshape", value, op.integers(*(size for size in kept if size is not None)))
    parts = [op.integers(dim) if isinstance(dim, int) else size_of(op, *dim) for dim in dims]
    result = op.emit("Reshape", value, op.emit("Concat", *parts, axis=0))
    shape = [dim if isinstance(dim, int) else op.shape(dim[0])[dim[1]] for dim in dims]
    return op.graph.set_shape(result, tuple(None if size == -1 else size for size in shape))


def size_of(op: Operator, value: str, axis: int) -> str:
    """The size of a value along an axis, INT64[1]."""
    size = op.shape(value)[axis]
    return op.integers(size) if isinstance(size, int) else op.emit("Shape", value, start=axis, end=axis + 1)


def like(op: Operator, value: str) -> list[Dim]:
    """The dims of a value."""
    return [(value, axis) for axis in range(op.rank(value))]


def _known(op: Operator, dim: Dim) -> int | None:
    if isinstance(dim, int):
        return dim
    size = op.shape(dim[0])[dim[1]]
    return size if isinstance(size, int) else None


def _kept(op: Operator, value: str, index: int, dim: Dim) -> int | None:
    """The size of a dim; 0 where the value has the same size at that index already."""
    known = _known(op, dim)
    shape = op.shape(value)
    if known is None and index < len(shape) and not isinstance(dim, int):
        name = op.shape(dim[0])[dim[1]]
        if dim == (value, index) or (name is not None and name == shape[index]):
            return 0
    return known
