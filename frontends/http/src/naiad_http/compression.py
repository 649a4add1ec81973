"""Compressed bodies: which coding an answer gets, and gzip and deflate both ways."""

import zlib

from naiad_http.chunks import too_large
from naiad_http.statuses import HttpError

_CODINGS = ("identity", "deflate", "gzip")
_WINDOW_BITS = {"gzip": 16 + zlib.MAX_WBITS, "deflate": zlib.MAX_WBITS}
_ANY_FORMAT = 32 + zlib.MAX_WBITS
_FAST = 1
"""The level of compression: the higher ones take several times the time for a few percent on tensors."""


def decompress(body: bytes, coding: str, limit: int) -> bytes:
    """The content of a body with that Content-Encoding, gzip or zlib as its first bytes tell.

    Raises HttpError 501 for another coding, and 400 for a broken body or a content of more than `limit` bytes.
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
    pieces: list[bytes] = []
    left = limit
    while body:
        stream = zlib.decompressobj(_ANY_FORMAT)
        try:
            piece = stream.decompress(body, left + 1)
        except zlib.error as error:
            raise HttpError(400, f"the body is not the {coding} that its Content-Encoding says: {error}") from error
        left -= len(piece)
        if left < 0:
            raise too_large(limit - left, limit)
        if not stream.eof:
            raise HttpError(400, f"the {coding} body ends before its content does")
        pieces.append(piece)
        body = stream.unused_data
    return b"".join(pieces)


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
