"""Limits on the fields beside the raw contents of a large request, counted before protobuf parses it.

protobuf holds the interpreter's lock while it parses a message, and takes 30 to 130 ns for each small field or varint:
64 MB of them would stop the server for seconds.
"""

from collections.abc import Mapping
from typing import Any

from naiad.errors import InvalidArgumentError
from naiad_grpc.codec.framing import Fields, field_end, malformed, read_varint

MOST_TYPED_FIELDS = 1_000_000
"""The maximum of fields beside the raw contents, including elements of BYTES."""

MOST_VARINT_BYTES = 8 << 20
"""The maximum of bytes of varints: `contents` of booleans and of integers."""

_STRING = 0x42
"""The tag of an element of `bytes_contents`, the most frequent field."""

_VARINT_CONTENTS = frozenset((0x0A, 0x12, 0x1A, 0x22, 0x2A))
_NESTED: Mapping[int, Any] = {0x2A: {0x2A: None}, 0x32: {}}
"""The nested messages that are counted: `inputs`, their `contents` (None), and `outputs`."""


def check_typed_size(text: bytes) -> None:
    """Raise InvalidArgumentError when `text`, an infer request without its raw contents, takes long to read."""
    try:
        _check(text, 0, len(text), _NESTED, Fields(MOST_TYPED_FIELDS))
    except IndexError:
        raise malformed("it ends within a field") from None


def _check(text: bytes, start: int, end: int, nested: Mapping[int, Any] | None, fields: Fields) -> None:
    varints = 0
    while start < end:
        if nested is None and text[start] == _STRING and text[start + 1] < 0x80:
            fields.count()
            start += 2 + text[start + 1]
            continue
        tag, content = read_varint(text, start)
        following = field_end(text, tag, content, fields)
        if nested is None:
            varints += following - content if tag in _VARINT_CONTENTS else 0
        elif tag in nested:
            _, first = read_varint(text, content)
            _check(text, first, min(following, end), nested[tag], fields)
        start = following
    if varints > MOST_VARINT_BYTES:
        raise InvalidArgumentError(
            f"the contents of an input have {varints} bytes of integers or booleans, and {MOST_VARINT_BYTES} is the "
            "most; send it in raw_input_contents"
        )
