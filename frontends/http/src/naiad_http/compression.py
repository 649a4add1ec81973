"""Compressed bodies: which coding an answer gets, and gzip and deflate both ways."""

import zlib

from naiad.buffers import Buffer
from naiad_http.chunks import too_large
from naiad_http.statuses import HttpError

_CODINGS = ("identity", "deflate", "gzip")
_WINDOW_BITS = {"gzip": 16 + zlib.MAX_WBITS, "deflate": zlib.MAX_WBITS}
_ANY_FORMAT = 32 + zlib.MAX_WBITS
_PIECE = 65536

MAX_MEMBERS = 64
"""The most compressed streams in one body; RFC 1952 lets gzip have several, and an empty one takes 20 bytes."""

_FAST = 1
"""The level of compression: the higher ones take several times the time for a few percent on tensors."""


def decompress(body: Buffer, coding: str, limit: int) -> Buffer:
    """The content of a body with that Content-Encoding, gzip or zlib by its first bytes; linear in both sizes.

    Raises HttpError 501 for another coding, and 400 for a broken body, more than MAX_MEMBERS streams in one body, or a
    content of more than `limit` bytes.
    """
    coding = coding.strip().lower()
    if coding in ("", "identity"):
        return body
    if coding not in _WINDOW_BITS:
        raise HttpError(
            501,
            f"Unsupported compression type '{coding[:40]}'; send gzip, deflate or plain bodies",
            (("Accept-Encoding", "gzip, deflate"),),
        )
    content = bytearray()
    offset, members, view = 0, 0, memoryview(body)
    while offset < len(view):
        members += 1
        if members > MAX_MEMBERS:
            raise HttpError(
                400, f"the {coding} body has more than {MAX_MEMBERS} compressed streams; send it as one stream"
            )
        try:
            offset = _decompress_member(view, offset, content, limit)
        except zlib.error as error:
            raise HttpError(400, f"the body is not the {coding} that its Content-Encoding says: {error}") from error
        if offset < 0:
            raise HttpError(400, f"the {coding} body ends before its content does")
    return content


def _decompress_member(body: memoryview, offset: int, content: bytearray, limit: int) -> int:
    """Append what the compressed stream at `offset` holds to `content`; the offset behind it, -1 if it has no end.

    The stream gets its bytes in pieces, since zlib copies all that it has and does not need.
    """
    stream = zlib.decompressobj(_ANY_FORMAT)
    while offset < len(body):
        piece = body[offset : offset + _PIECE]
        offset += len(piece)
        content += stream.decompress(piece, limit + 1 - len(content))
        if len(content) > limit:
            raise too_large(len(content), limit)
        if stream.eof:
            return offset - len(stream.unused_data)
    return -1


def compress(content: bytes, coding: str) -> bytes:
    """The content in that coding."""
    if coding == "identity":
        return content
    stream = zlib.compressobj(_FAST, zlib.DEFLATED, _WINDOW_BITS[coding])
    return stream.compress(content) + stream.flush()


def wanted_coding(accept_encoding: str) -> str:
    """The coding that an Accept-Encoding header likes best, of those we have: the first of equals, else identity."""
    best, best_weight = "identity", 0.0
    for entry in accept_encoding.split(","):
        name, _, parameters = entry.partition(";")
        coding = name.strip().lower()
        weight = _weight(parameters)
        if coding in _CODINGS and weight > best_weight:
            best, best_weight = coding, weight
    return best


def _weight(parameters: str) -> float:
    name, _, value = parameters.partition("=")
    if name.strip().lower() != "q":
        return 1.0
    try:
        return float(value)
    except ValueError:
        return 0.0
