"""The `data` of a JSON tensor to a numpy array: any nesting, every datatype that JSON can carry, nothing truncated."""

from itertools import chain
from typing import Any

import numpy as np

from naiad.datatypes import TensorType
from naiad.errors import InvalidArgumentError, TooLargeError
from naiad_http.codec.buffers import object_array
from naiad_http.codec.documents import MAX_DEPTH, as_array, too_deep

_INTEGERS = {
    f"{sign}INT{bits}": (0, 2**bits - 1) if sign else (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)
    for sign in ("", "U")
    for bits in (8, 16, 32, 64)
}
_FLOATS = frozenset(("FP32", "FP64"))
_ONLY_BINARY = frozenset(("FP16", "BF16"))
_NUMBERS = {int, float}


def array_of_json(data: Any, name: str, kind: TensorType, count: int, limit: int) -> np.ndarray:
    """The flat array of the `count` elements that `data`, nested in any way, holds in row-major order.

    Raises TooLargeError when the array takes more than `limit` bytes, and InvalidArgumentError when the number, type
    or range of the elements is not right, or the nesting is deeper than MAX_DEPTH.
    """
    if kind.wire in _ONLY_BINARY:
        raise InvalidArgumentError(
            f"receiving {kind.wire} data via JSON is not supported. "
            f"Please use the binary data format for input '{name}'"
        )
    elements, kinds = flatten(as_array(data, f"data of input '{name}'"))
    if len(elements) != count:
        raise InvalidArgumentError(
            f"Unable to parse 'data': Shape does not match true shape of 'data' field of input '{name}': "
            f"the shape asks for {count} elements, the data has {len(elements)}"
        )
    if count * kind.itemsize > limit:
        raise TooLargeError(
            f"input '{name}' needs {count * kind.itemsize} bytes, which exceeds the maximum allowed input size of "
            f"{limit} bytes. Use --http-max-input-size to increase the limit."
        )
    return _converted(elements, kinds, name, kind)


def flatten(data: list[Any]) -> tuple[list[Any], set[type]]:
    """The innermost elements in row-major order and the set of their types; lists and values may be mixed."""
    kinds = set(map(type, data))
    depth = 1
    while list in kinds:
        depth += 1
        if depth > MAX_DEPTH:
            raise too_deep()
        if len(kinds) == 1:
            data = list(chain.from_iterable(data))
        else:
            data = [inner for value in data for inner in (value if type(value) is list else (value,))]
        kinds = set(map(type, data))
    return data, kinds


def _converted(elements: list[Any], kinds: set[type], name: str, kind: TensorType) -> np.ndarray:
    wire = kind.wire
    if wire in _FLOATS:
        _require(kinds <= _NUMBERS, elements, name, "numbers", _NUMBERS)
        return _floats(elements, name, kind)
    if wire in _INTEGERS:
        _require(kinds <= {int}, elements, name, "integers", {int})
        _check_range(elements, name, wire)
        return np.array(elements, dtype=kind.dtype)
    if wire == "BOOL":
        _require(kinds <= {bool}, elements, name, "true or false", {bool})
        return np.array(elements, dtype=kind.dtype)
    _require(kinds <= {str}, elements, name, "strings", {str})
    return _strings(elements, name)


def _floats(elements: list[Any], name: str, kind: TensorType) -> np.ndarray:
    if kind.wire == "FP64":
        return np.array(elements, dtype=kind.dtype)
    with np.errstate(over="raise"):
        try:
            return np.array(elements, dtype=kind.dtype)
        except FloatingPointError as error:
            raise InvalidArgumentError(
                f"input '{name}' has a number too large for FP32; send it as FP64, or as Infinity if you mean that"
            ) from error


def _strings(elements: list[Any], name: str) -> np.ndarray:
    try:
        return object_array([element.encode() for element in elements])
    except UnicodeEncodeError as error:
        raise InvalidArgumentError(
            f"input '{name}' has a string with half a surrogate pair, which is no UTF-8; send such bytes as binary data"
        ) from error


def _check_range(elements: list[int], name: str, wire: str) -> None:
    least, most = _INTEGERS[wire]
    if not elements or (min(elements) >= least and max(elements) <= most):
        return
    wrong = next(element for element in elements if not least <= element <= most)
    raise InvalidArgumentError(f"input '{name}' has the value {wrong}, but {wire} goes from {least} to {most}")


def _require(right: bool, elements: list[Any], name: str, wanted: str, types: set[type]) -> None:
    if not right:
        wrong = next(element for element in elements if type(element) not in types)
        raise InvalidArgumentError(f"Unable to parse 'data': input '{name}' takes {wanted}, got {wrong!r:.80}")
