"""JSON parser of requests and typed access to members; every mistake is an InvalidArgumentError.

Numbers may be `NaN`, `Infinity` and `-Infinity`, as Triton writes them. orjson refuses these, so a text that has them
is parsed again by the slower parser of the standard library.
"""

import json
from collections.abc import Mapping
from math import isinf
from typing import Any

import orjson

from naiad.errors import InvalidArgumentError

MAX_DEPTH = 100
"""How deep the data of a tensor may be nested; orjson takes 1,024 levels of everything else."""

_MAX_UINT = 2**64 - 1
_INFINITY = b"Infinity"


def parse(text: bytes | bytearray | memoryview) -> Any:
    """The value of a JSON text in UTF-8. Raises InvalidArgumentError with the reason and the offset."""
    try:
        return orjson.loads(text)
    except orjson.JSONDecodeError as error:
        if "depth" in error.msg or "ecursion" in error.msg:
            raise too_deep() from error
        content = bytes(text)
        if b"NaN" in content or b"Infinity" in content:
            return _parse_with_constants(content)
        raise _unreadable(error) from error


def _parse_with_constants(text: bytes) -> Any:
    try:
        value = json.loads(text.decode())
        written = json.dumps(value, ensure_ascii=False).encode()  # fails for half a surrogate pair, as orjson does
        if written.count(_INFINITY) > text.count(_INFINITY):  # a number may have become infinite
            json.loads(text, parse_float=_finite)
    except RecursionError as error:
        raise too_deep() from error
    except ValueError as error:  # not JSON, not UTF-8, or a number that is too large or has thousands of digits
        raise _unreadable(error) from error
    return value


def _finite(number: str) -> float:
    """The value of a number in JSON. Raises ValueError if no double can hold it."""
    value = float(number)
    if isinf(value):
        raise ValueError(f"number is infinity when parsed as double: {number[:40]}")
    return value


def _unreadable(error: ValueError) -> InvalidArgumentError:
    reason = f"{error.msg} at {error.pos}" if isinstance(error, json.JSONDecodeError) else str(error)
    if "integer string conversion" in reason:  # by `int`, which would have the caller change the interpreter
        reason = "an integer has too many digits for 64 bits"
    if "UTF-8" in reason or isinstance(error, UnicodeDecodeError):
        reason += (
            "; a body with binary tensors needs the header Inference-Header-Content-Length, the length of its JSON"
        )
    return InvalidArgumentError(f"failed to parse the request JSON buffer: {reason}")


def too_deep() -> InvalidArgumentError:
    """The error for JSON that is nested too deep."""
    return InvalidArgumentError(
        f"JSON nesting depth exceeds maximum allowed limit ({MAX_DEPTH}); send the tensor flat, its shape says the rest"
    )


def as_object(value: Any, what: str) -> Mapping[str, Any]:
    """`value`, which must be a JSON object; `what` names it in the error."""
    if type(value) is dict:
        return value
    raise _wrong(what, "an object", value)


def as_array(value: Any, what: str) -> list[Any]:
    """`value`, which must be a JSON array."""
    if type(value) is list:
        return value
    raise _wrong(what, "an array", value)


def as_string(value: Any, what: str) -> str:
    """`value`, which must be a JSON string."""
    if type(value) is str:
        return value
    raise _wrong(what, "a string", value)


def as_boolean(value: Any, what: str) -> bool:
    """`value`, which must be true or false."""
    if type(value) is bool:
        return value
    raise _wrong(what, "true or false", value)


def as_unsigned(value: Any, what: str, most: int = _MAX_UINT) -> int:
    """`value`, which must be an integer from 0 to `most`."""
    if type(value) is int and 0 <= value <= most:
        return value
    raise _wrong(what, f"an integer from 0 to {most}", value)


def member(holder: Mapping[str, Any], key: str, what: str) -> Any:
    """The member `key` of an object, which must have it."""
    try:
        return holder[key]
    except KeyError:
        raise InvalidArgumentError(f"Unable to parse '{key}': {what} has no member '{key}'") from None


def _wrong(what: str, expected: str, value: Any) -> InvalidArgumentError:
    text = json.dumps(value, default=str) if type(value) in (str, int, float, bool, type(None)) else _kind(value)
    return InvalidArgumentError(f"Unable to parse '{what}': it must be {expected}, not {text[:80]}")


def _kind(value: Any) -> str:
    return "an object" if isinstance(value, dict) else "an array"
