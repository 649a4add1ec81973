"""Shapes as they come over the wire, checked before anything is computed with them."""

from collections.abc import Sequence
from math import prod
from typing import Any

from naiad.errors import InvalidArgumentError
from naiad_http.codec.documents import as_array

_MAX_BYTES = 2**63 - 1
_MAX_RANK = 64
"""The most dimensions that a numpy array can have."""


def read_shape(value: Any, name: str) -> tuple[int, ...]:
    """The `shape` member of input `name`. Raises InvalidArgumentError unless it is a list of unsigned integers."""
    sizes = as_array(value, "shape of an input")
    for size in sizes:
        if type(size) is not int or size < 0:
            raise InvalidArgumentError(
                f"Unable to parse 'shape': the sizes of input '{name}' must be integers from 0 up, got {size!r:.40}"
            )
    if len(sizes) > _MAX_RANK:
        raise InvalidArgumentError(f"input '{name}' has {len(sizes)} dimensions; {_MAX_RANK} is the most there can be")
    return tuple(sizes)


def count_elements(shape: Sequence[int], itemsize: int, name: str) -> int:
    """How many elements a tensor of that shape has. Raises InvalidArgumentError when their number or bytes overflow.

    A size of 0 does not hide an overflow of the other sizes: frameworks multiply them in any order.
    """
    elements = prod(shape) or prod(size for size in shape if size)
    if elements > _MAX_BYTES:
        raise InvalidArgumentError(
            f"the shape of input '{name}' causes total element count to exceed maximum size of {_MAX_BYTES}"
        )
    if elements * (itemsize or 1) > _MAX_BYTES:
        raise InvalidArgumentError(
            f"byte size overflow for input '{name}': {elements} elements of {itemsize} bytes each"
        )
    return 0 if 0 in shape else elements
