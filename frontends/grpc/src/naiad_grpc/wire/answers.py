"""Header blocks of answers: the usual ones are constants."""

from functools import lru_cache
from urllib.parse import quote

from naiad_grpc.http2.header_blocks import encode_fields
from naiad_grpc.statuses import Code, RpcError
from naiad_grpc.wire.compression import ENCODINGS

_STATUS = (b":status", b"200")
_CONTENT_TYPE = (b"content-type", b"application/grpc")
_ACCEPTED = (b"grpc-accept-encoding", ",".join(("identity", *ENCODINGS)).encode())
_PRINTABLE = "".join(map(chr, range(0x20, 0x7F))).replace("%", "")

HEAD = encode_fields([_STATUS, _CONTENT_TYPE, _ACCEPTED])
"""The head of an answer whose messages are not compressed."""

OK_TRAILERS = encode_fields([(b"grpc-status", b"0")])
"""The trailers of a call that went well."""


@lru_cache
def head(encoding: str) -> bytes:
    """The head of an answer whose messages are compressed by that encoding."""
    return encode_fields([_STATUS, _CONTENT_TYPE, _ACCEPTED, (b"grpc-encoding", encoding.encode())])


def trailers(error: RpcError) -> bytes:
    """The trailers of a call that ends with a status."""
    return encode_fields(_status_fields(error))


def trailers_only(error: RpcError) -> bytes:
    """The only header block of a call that ends with a status before any message."""
    fields = [_STATUS, _CONTENT_TYPE]
    if error.code is Code.UNIMPLEMENTED:
        fields.append(_ACCEPTED)
    return encode_fields(fields + _status_fields(error))


def http_refusal(status: int) -> bytes:
    """The header block that refuses a request which is not gRPC."""
    return encode_fields([(b":status", str(status).encode()), (b"content-length", b"0")])


def _status_fields(error: RpcError) -> list[tuple[bytes, bytes]]:
    message = quote(error.message, safe=_PRINTABLE, errors="replace").encode()
    return [(b"grpc-status", b"%d" % error.code), (b"grpc-message", message)]
