"""Decoder of tensor shapes in JSON."""

from typing import Any

from naiad.errors import InvalidArgumentError
from naiad_http.codec.documents import as_array


def read_shape(value: Any, name: str) -> tuple[int, ...]:
    """The `shape` member of input `name`. Raises InvalidArgumentError unless it is a list of unsigned integers."""
    sizes = as_array(value, "shape of an input")
    for size in sizes:
        if type(size) is not int or size < 0:
            raise InvalidArgumentError(
                f"Unable to parse 'shape': the sizes of input '{name}' must be integers from 0 up, got {size!r:.40}"
            )
    return tuple(sizes)
