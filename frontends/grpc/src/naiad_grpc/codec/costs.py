"""Decoding cost of requests: many strings or typed elements must be decoded on a thread."""

from naiad_grpc.codec.framing import RequestMessage, read_varint, scan

COSTLY_BYTES = 256 << 10
"""Messages from this size may take more than some milliseconds."""

_LONG_TEXT = 64 << 10
_NAME_TAG, _VERSION_TAG = 0x0A, 0x12
_SLOW_DATATYPES = (b"\x12\x05BYTES", b"\x12\x04BOOL")
"""Those whose elements are looked at one by one."""


def takes_long(message: RequestMessage) -> bool:
    """Whether decoding takes more than views on the message; for one of COSTLY_BYTES or more."""
    layout = scan(message)
    if layout is None:
        return True
    if layout.contents_start > _LONG_TEXT:
        return True
    text = bytes(message[: layout.contents_start])
    return any(datatype in text for datatype in _SLOW_DATATYPES)


def model_name_and_version(message: RequestMessage) -> tuple[str, str]:
    """The model and version in the first fields of an infer request, ("", "") if these are other fields."""
    try:
        name, offset = _text(message, 0, _NAME_TAG)
        version, _ = _text(message, offset, _VERSION_TAG) if name else ("", 0)
    except (IndexError, UnicodeDecodeError):
        return "", ""
    return name, version


def _text(message: RequestMessage, offset: int, tag: int) -> tuple[str, int]:
    """The text of the field at that offset and the offset after it; "" if it is another field."""
    if message[offset] != tag:
        return "", offset
    size, start = read_varint(message, offset + 1)
    return bytes(message[start : start + size]).decode(), start + size
