"""Shapes from the wire: their validation before anything is computed with them, and shapes that follow from a count."""

from collections.abc import Sequence
from math import prod

from naiad.errors import InvalidArgumentError

_MAX_BYTES = 2**63 - 1
_MAX_RANK = 64
"""The most dimensions that a numpy array can have."""

_POINTER = 8
"""The bytes that a string takes in a numpy array, beside its own."""


def count_elements(shape: Sequence[int], itemsize: int, name: str) -> int:
    """How many elements a tensor of that shape (no size below 0) has; `itemsize` 0 is for BYTES.

    Raises InvalidArgumentError when their number or bytes overflow, or there are more dimensions than there can be. A
    size of 0 does not hide an overflow of the other sizes: frameworks multiply them in any order.
    """
    if len(shape) > _MAX_RANK:
        raise InvalidArgumentError(f"input '{name}' has {len(shape)} dimensions; {_MAX_RANK} is the most there can be")
    itemsize = itemsize or _POINTER
    elements = prod(shape) or prod(size for size in shape if size)
    if elements > _MAX_BYTES:
        raise InvalidArgumentError(
            f"the shape of input '{name}' causes total element count to exceed maximum size of {_MAX_BYTES}"
        )
    if elements * itemsize > _MAX_BYTES:
        raise InvalidArgumentError(
            f"byte size overflow for input '{name}': {elements} elements of {itemsize} bytes each"
        )
    return 0 if 0 in shape else elements


def deduced_shape(dims: tuple[int, ...], count: int, name: str) -> tuple[int, ...]:
    """`dims` without -1, for `count` elements of input `name`: the innermost -1 takes all of them, the others 1.

    Raises InvalidArgumentError if the fixed dimensions do not divide the number of elements.
    """
    fixed = prod(dim for dim in dims if dim != -1)
    variable, remainder = divmod(count, fixed) if fixed else (0, count)
    if remainder or (-1 not in dims and variable != 1):
        raise InvalidArgumentError(
            f"The schema can not convert input '{name}' to tensor with proper shape: "
            f"the model asks for {list(dims)}, the request has {count} elements"
        )
    if -1 not in dims:
        return dims
    innermost = len(dims) - 1 - dims[::-1].index(-1)
    return tuple((variable if index == innermost else 1) if dim == -1 else dim for index, dim in enumerate(dims))
