"""Shape bridges: between a model with a batch dimension and one without, and over a `reshape` of the ensemble."""

from collections.abc import Callable, Sequence
from typing import TypeAlias

Shape: TypeAlias = tuple[int, ...]

Bridge = Callable[[Shape], Shape]
"""The shape in which a consumer gets what has this shape."""


def bridge(dims: Shape, produced_in_batches: bool, consumed_in_batches: bool) -> Bridge | None:
    """How a tensor gets to a consumer with these configured dims; None when it stays as it is."""
    if produced_in_batches == consumed_in_batches:
        return None
    return _prepending(dims) if consumed_in_batches else _stripping(dims)


def reshape(dims: Shape, to: Shape) -> Bridge | None:
    """How a tensor of these dims gets others, which have the same variable dims in order; None for the same dims.

    A shape that does not have the dims stays as it is.
    """
    if dims == to:
        return None

    def bridged(shape: Shape) -> Shape:
        batch = len(shape) - len(dims)
        if not 0 <= batch <= 1 or not matches(shape[batch:], dims):
            return shape
        variable = iter(size for size, dim in zip(shape[batch:], dims, strict=True) if dim == -1)
        return (*shape[:batch], *(next(variable) if dim == -1 else dim for dim in to))

    return bridged


def chained(first: Bridge | None, second: Bridge | None) -> Bridge | None:
    """The first bridge and then the second."""
    if first is None or second is None:
        return first or second
    return lambda shape: second(first(shape))


def matches(shape: Sequence[int], dims: Sequence[int]) -> bool:
    """Whether two shapes can be the same; -1 on either side stands for any size."""
    return len(shape) == len(dims) and all(
        one == other or -1 in (one, other) for one, other in zip(shape, dims, strict=True)
    )


def _prepending(dims: Shape) -> Bridge:
    """What has exactly the dims is a batch of one; everything else has its batch dimension already."""
    return lambda shape: (1, *shape) if matches(shape, dims) else shape


def _stripping(dims: Shape) -> Bridge:
    """A batch of one loses its first dimension, unless the consumer wants it; others are left to be refused."""
    return lambda shape: shape[1:] if shape[:1] == (1,) and not matches(shape, dims) else shape
