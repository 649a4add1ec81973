"""Content codings: negotiation of the coding of a response, and gzip and deflate in both directions."""

import zlib

from naiad_http.chunks import too_large
from naiad_http.statuses import HttpError
from naiad_kit.buffers import Buffer

_CODINGS = ("identity", "deflate", "gzip")
_WINDOW_BITS = {"gzip": 16 + zlib.MAX_WBITS, "deflate": zlib.MAX_WBITS}
_ANY_FORMAT = 32 + zlib.MAX_WBITS
_PIECE = 65536

MAX_MEMBERS = 64
"""The maximum of compressed streams in one body; RFC 1952 allows several, and an empty one takes 20 bytes."""

_FAST = 1
"""The level of compression: higher levels take several times as long for a few percent on tensors."""


def decompress(body: Buffer, coding: str, limit: int) -> Buffer:
    """The content of a body with that Content-Encoding; its first bytes select gzip or zlib. Linear in both sizes.

    Raises HttpError 501 for another coding, and 400 for an invalid body, more than MAX_MEMBERS streams in one body, or
    a content of more than `limit` bytes.
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
    """Append the content of the compressed stream at `offset` to `content`; the offset after it, -1 if it has no end.

    The stream is fed in pieces, because zlib copies all input that it does not need.
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
    """The content in that coding, gzip or deflate."""
    stream = zlib.compressobj(_FAST, zlib.DEFLATED, _WINDOW_BITS[coding])
    return stream.compress(content) + stream.flush()


def preferred_coding(accept_encoding: str) -> str:
    """The supported coding with the highest weight in an Accept-Encoding header, the first of equals, or identity."""
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
