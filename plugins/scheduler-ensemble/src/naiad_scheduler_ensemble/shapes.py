"""Shape bridges between a model with a batch dimension and one without, in both directions."""

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
