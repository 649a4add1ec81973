"""The shape of a tensor of which only the number of its elements is known."""

from math import prod

from naiad.errors import InvalidArgumentError


def deduced_shape(dims: tuple[int, ...], count: int, name: str) -> tuple[int, ...]:
    """`dims` without -1, for `count` elements of input `name`: the innermost -1 takes what there is, all others 1.

    Raises InvalidArgumentError when the fixed dimensions do not divide the number of elements.
    """
    fixed = prod(dim for dim in dims if dim != -1)
    variable, left = divmod(count, fixed) if fixed else (0, count)
    if left or (-1 not in dims and variable != 1):
        raise InvalidArgumentError(
            f"The schema can not convert input '{name}' to tensor with proper shape: "
            f"the model asks for {list(dims)}, the request has {count} elements"
        )
    if -1 not in dims:
        return dims
    innermost = len(dims) - 1 - dims[::-1].index(-1)
    return tuple((variable if place == innermost else 1) if dim == -1 else dim for place, dim in enumerate(dims))
