"""Framing of protobuf messages: splits an infer request into the bytes of its tensors and everything else.

protobuf would copy the bytes of each tensor, so it parses only the rest of the message. The format is that of
https://protobuf.dev/programming-guides/encoding/.
"""

from typing import NamedTuple

from naiad.errors import InvalidArgumentError

ID_TAG, RAW_TAG = 0x1A, 0x3A
_RAW_FIELD = 7
_IN_ORDER = frozenset((0x0A, 0x12, ID_TAG, 0x22, 0x2A, 0x32, RAW_TAG))
"""The tags of the fields of an infer request, all of which have a length."""

_VARINT, _FIXED64, _LENGTH, _GROUP, _GROUP_END, _FIXED32 = range(6)
_MOST_NESTED = 100
MOST_FIELDS = 8192
"""The maximum of fields beside the tensors of a request: each takes about 1 µs, and a client may send millions."""

_LONGEST, _LONGEST_SHORT = 10, 5
"""The maximum of bytes of a number of 64 bits, and of a tag or a size."""


RequestMessage = bytes | memoryview
"""The bytes of a message; a view for a large one that came in parts."""


class Layout(NamedTuple):
    """The offsets of the parts of an infer request: the field `id`, its text, and the raw contents.

    `contents` has the offset and the size of each. Without an id, its three offsets are where it would be.
    """

    id_start: int
    text_start: int
    id_end: int
    contents_start: int
    contents: list[tuple[int, int]]


class Fields:
    """Counts the fields of a message against a maximum."""

    __slots__ = ("_most", "_remaining")

    def __init__(self, most: int) -> None:
        self._remaining = self._most = most

    def count(self) -> None:
        """Count one field. Raises InvalidArgumentError above the maximum."""
        self._remaining -= 1
        if self._remaining < 0:
            raise malformed(f"it has more than {self._most} fields; send tensors as raw_input_contents")


def varint(value: int) -> bytes:
    """The bytes of an unsigned integer, or of a signed one (64 bits, two's complement)."""
    value &= 0xFFFFFFFFFFFFFFFF
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def header(tag: int, size: int) -> bytes:
    """The header of a field of `size` bytes."""
    return bytes((tag, size)) if size < 0x80 else bytes((tag,)) + varint(size)


def field(tag: int, content: bytes) -> bytes:
    """A field with these bytes."""
    return header(tag, len(content)) + content


def scan(message: RequestMessage) -> Layout | None:
    """The layout of an infer request whose fields are in the order of their numbers, as all clients write them.

    None for any other message, including an invalid one and one with too many fields.
    """
    end = len(message)
    offset = last = 0
    remaining = MOST_FIELDS
    id_start = text_start = id_end = contents_start = -1
    contents: list[tuple[int, int]] = []
    try:
        while offset < end and remaining:
            remaining -= 1
            tag = message[offset]
            if tag not in _IN_ORDER or tag < last or tag == last == ID_TAG:
                return None
            size = message[offset + 1]
            start = offset + 2
            if size > 0x7F:
                size, start = _read_varint(message, offset + 1, _LONGEST_SHORT)
            if tag == RAW_TAG:
                if contents_start < 0:
                    contents_start = offset
                contents.append((start, size))
            if tag == ID_TAG:
                id_start, text_start, id_end = offset, start, start + size
            elif tag > ID_TAG and id_start < 0:
                id_start = text_start = id_end = offset
            last = tag
            offset = start + size
    except (IndexError, InvalidArgumentError):
        return None
    if offset != end:
        return None
    if contents_start < 0:
        contents_start = end
    if id_start < 0:
        id_start = text_start = id_end = end
    return Layout(id_start, text_start, id_end, contents_start, contents)


def split(message: RequestMessage) -> tuple[bytes, list[tuple[int, int]]]:
    """An infer request without its raw contents, and the offset and size of each of these.

    Raises InvalidArgumentError if the message ends within a field or is malformed.
    """
    around: list[RequestMessage] = []
    contents: list[tuple[int, int]] = []
    kept = offset = 0
    fields = Fields(MOST_FIELDS)
    try:
        while offset < len(message):
            tag, start = _read_varint(message, offset, _LONGEST_SHORT)
            end = _end_of(message, tag, start, 0, fields)
            if tag == RAW_TAG:
                around.append(message[kept:offset])
                kept = end
                size, start = _read_varint(message, start, _LONGEST_SHORT)
                contents.append((start, size))
            offset = end
    except IndexError:
        raise malformed("it ends within a field") from None
    if offset != len(message):
        raise malformed("it ends within a field")
    around.append(message[kept:])
    return b"".join(around), contents


def unfinished_content(front: RequestMessage) -> int:
    """The offset of the raw contents that continue after the first bytes of a request, 0 for none."""
    offset, end = 0, len(front)
    try:
        while offset < end and front[offset] in _IN_ORDER:
            size, start = _read_varint(front, offset + 1, _LONGEST_SHORT)
            if front[offset] == RAW_TAG and start + size > end:
                return start
            offset = start + size
    except (IndexError, InvalidArgumentError):
        return 0
    return 0


def read_varint(message: RequestMessage, offset: int) -> tuple[int, int]:
    """The tag or size at that offset, and the offset after it. Raises InvalidArgumentError or IndexError."""
    return _read_varint(message, offset, _LONGEST_SHORT)


def field_end(message: RequestMessage, tag: int, offset: int, fields: Fields) -> int:
    """The end of the field whose content is at that offset; it may be after the end of the message.

    Counts the field and those within it. Raises InvalidArgumentError or IndexError.
    """
    return _end_of(message, tag, offset, 0, fields)


def malformed(reason: str) -> InvalidArgumentError:
    """The error for bytes that are not an infer request."""
    return InvalidArgumentError(f"failed to parse the request as a ModelInferRequest message: {reason}")


def _read_varint(message: RequestMessage, offset: int, most: int) -> tuple[int, int]:
    """The unsigned integer of at most `most` bytes at that offset, and the offset after it."""
    value = 0
    for shift in range(0, most * 7, 7):
        byte = message[offset]
        offset += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, offset
    raise malformed(f"a number has more than {most} bytes")


def _end_of(message: RequestMessage, tag: int, offset: int, depth: int, fields: Fields) -> int:
    """The end of the field whose tag ends at `offset`; it may be after the end of the message."""
    fields.count()
    kind = tag & 7
    if not 8 <= tag < 1 << 32:
        raise malformed(f"there is no field number {tag >> 3}")
    if kind == _VARINT:
        return _read_varint(message, offset, _LONGEST)[1]
    if kind == _LENGTH:
        size, start = _read_varint(message, offset, _LONGEST_SHORT)
        return start + size
    if kind == _GROUP and depth < _MOST_NESTED:
        return _end_of_group(message, tag >> 3, offset, depth + 1, fields)
    if kind in (_FIXED32, _FIXED64):
        return offset + (4 if kind == _FIXED32 else 8)
    raise malformed("it has a group without a start, nested too deep, or a field of no known kind")


def _end_of_group(message: RequestMessage, number: int, offset: int, depth: int, fields: Fields) -> int:
    while True:
        tag, offset = _read_varint(message, offset, _LONGEST_SHORT)
        if tag & 7 == _GROUP_END:
            if tag >> 3 != number:
                raise malformed(f"it ends group {tag >> 3} within group {number}")
            return offset
        offset = _end_of(message, tag, offset, depth, fields)
