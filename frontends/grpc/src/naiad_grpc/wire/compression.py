"""Compression of messages: gzip and deflate, with a limit on what a message becomes."""

import zlib

from naiad_grpc.http2.streams import Buffer
from naiad_grpc.statuses import Code, RpcError

ENCODINGS = {"gzip": zlib.MAX_WBITS | 16, "deflate": zlib.MAX_WBITS}
"""The supported encodings, the preferred one first, with the window bits of zlib."""

LEVELS = {"none": 0, "low": 1, "medium": 6, "high": 9}
"""The levels of zlib for those of --grpc-infer-response-compression-level."""

INLINE_BYTES = 512
"""Compressed messages up to this size become at most 0.5 MB, which takes less than a millisecond."""

_MOST_RATIO = 1032
"""No input of zlib becomes larger by more than this factor."""


def decompress(content: Buffer, encoding: str, most: int) -> bytes:
    """The message in a compressed one. Raises RpcError above `most` bytes and for broken content."""
    decompressor = zlib.decompressobj(ENCODINGS[encoding])
    try:
        message = decompressor.decompress(content, most + 1)
        if len(message) <= most and not decompressor.eof:
            raise RpcError(Code.INTERNAL, f"the {encoding} content of a message is not complete")
        if decompressor.unused_data:
            raise RpcError(Code.INTERNAL, f"there are bytes after the {encoding} content of a message")
    except zlib.error as error:
        raise RpcError(Code.INTERNAL, f"the {encoding} content of a message is broken: {error}") from None
    if len(message) > most:
        raise RpcError(Code.RESOURCE_EXHAUSTED, "Decompressed message larger than max")
    return message


def compress(content: list[Buffer], encoding: str, level: int) -> bytes:
    """The compressed message."""
    compressor = zlib.compressobj(level, zlib.DEFLATED, ENCODINGS[encoding])
    return b"".join([*map(compressor.compress, content), compressor.flush()])


def largest(compressed: int, most: int) -> int:
    """The most bytes that a compressed message can become, at most `most`."""
    return min(compressed * _MOST_RATIO, most)
