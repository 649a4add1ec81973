"""Shape of a tensor that is derived from its number of elements."""

from math import prod

from naiad.errors import InvalidArgumentError


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
