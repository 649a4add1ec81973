"""Plain values to bytes and back: None, bools, numbers, text, bytes, and sequences and mappings of such."""

import struct
from collections.abc import Mapping
from typing import Any

import numpy as np

from naiad_process_workers.frames import LinkBrokenError

_DEEPEST = 32
_LENGTH = struct.Struct("<I")
_INT = struct.Struct("<q")
_UINT = struct.Struct("<Q")
_FLOAT = struct.Struct("<d")
_NUMBERS = {b"i": _INT, b"u": _UINT, b"d": _FLOAT}


def packed(value: Any) -> bytes:
    """The bytes of a value. Raises TypeError for what is no plain value, struct.error for an integer over 64 bits."""
    parts: list[bytes] = []
    _put(parts, value)
    return b"".join(parts)


def unpacked(content: bytes) -> Any:
    """The value of these bytes; mappings are dicts, sequences lists. Raises LinkBrokenError."""
    try:
        return _value(content, 0, 0)[0]
    except (struct.error, UnicodeDecodeError, TypeError) as error:
        raise LinkBrokenError(f"a value cannot be read: {error}") from error


def _put(parts: list[bytes], value: Any) -> None:
    if value is None:
        parts.append(b"n")
    elif value is True or value is False:
        parts.append(b"t" if value else b"f")
    elif isinstance(value, str):
        text = value.encode("utf-8", "surrogatepass")
        parts.append(b"s" + _LENGTH.pack(len(text)) + text)
    elif isinstance(value, int):
        parts.append(b"i" + _INT.pack(value) if -(2**63) <= value < 2**63 else b"u" + _UINT.pack(value))
    elif isinstance(value, float):
        parts.append(b"d" + _FLOAT.pack(value))
    elif isinstance(value, bytes | bytearray | memoryview):
        parts.append(b"b" + _LENGTH.pack(len(value)) + bytes(value))
    elif isinstance(value, Mapping):
        parts.append(b"m" + _LENGTH.pack(len(value)))
        for key, each in value.items():
            _put(parts, key)
            _put(parts, each)
    elif isinstance(value, list | tuple):
        parts.append(b"l" + _LENGTH.pack(len(value)))
        for each in value:
            _put(parts, each)
    elif isinstance(value, np.generic):
        _put(parts, value.item())
    else:
        raise TypeError(f"a {type(value).__name__} cannot be sent to another process")


def _value(content: bytes, at: int, depth: int) -> tuple[Any, int]:
    """The value that begins there, and where the next one does."""
    tag = content[at : at + 1]
    at += 1
    if depth > _DEEPEST:
        raise LinkBrokenError("the values of a message are nested too deeply")
    if tag in (b"s", b"b", b"l", b"m"):
        (length,) = _LENGTH.unpack_from(content, at)
        return _sized(content, tag, length, at + 4, depth)
    if tag in _NUMBERS:
        return _NUMBERS[tag].unpack_from(content, at)[0], at + 8
    if tag in (b"n", b"t", b"f"):
        return None if tag == b"n" else tag == b"t", at
    raise LinkBrokenError(f"a value begins with {tag!r}")


def _sized(content: bytes, tag: bytes, length: int, at: int, depth: int) -> tuple[Any, int]:
    """A text, bytes, list or mapping of that length."""
    if tag in (b"s", b"b"):
        part = content[at : at + length]
        if len(part) < length:
            raise LinkBrokenError("a message is too short")
        return part.decode("utf-8", "surrogatepass") if tag == b"s" else part, at + length
    values = []
    for _ in range(length if tag == b"l" else 2 * length):
        value, at = _value(content, at, depth + 1)
        values.append(value)
    return values if tag == b"l" else dict(zip(values[::2], values[1::2], strict=True)), at
