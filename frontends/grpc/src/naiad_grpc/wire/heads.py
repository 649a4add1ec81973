"""Heads of calls: what the header fields of a request say by the protocol "gRPC over HTTP/2"."""

import binascii
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, TypeVar

from naiad_grpc.http2.fields import RequestFields
from naiad_grpc.http2.header_blocks import MOST_LIST_BYTES
from naiad_grpc.statuses import Code, RpcError
from naiad_grpc.wire.compression import ENCODINGS

Metadata = list[tuple[str, str | bytes]]
M = TypeVar("M")

_TIMEOUT = re.compile(rb"([0-9]{1,8})([HMSmun])")
_UNITS = {b"H": 3600.0, b"M": 60.0, b"S": 1.0, b"m": 1e-3, b"u": 1e-6, b"n": 1e-9}
_CONTENT_TYPES = (b"application/grpc", b"application/grpc+proto")
"""Messages in other formats, such as those of `application/grpc+json`, are not read."""
_PADDING = {0: b"", 2: b"==", 3: b"="}
_OF_TRANSPORT = frozenset(
    (b"te", b"content-type", b"content-length", b"grpc-timeout", b"grpc-encoding", b"grpc-accept-encoding")
)


@dataclass(frozen=True, slots=True)
class CallHead(Generic[M]):
    """The head of a call. Calls of a client share it when their header blocks are the same.

    `method` is what was found for the path, None for an unknown one. `refusal` ends the call at once: an RpcError, or
    the status of HTTP for what is not gRPC. `encoding` is that of compressed messages, `accepted` are those of answers.
    `traceparent` is the caller's trace context (W3C Trace Context), "" for none.
    """

    path: str
    method: M | None
    fields: tuple[tuple[bytes, bytes], ...]
    content_length: int = -1
    timeout: float | None = None
    encoding: str = "identity"
    accepted: tuple[str, ...] = ()
    refusal: RpcError | int | None = None
    traceparent: str = ""

    def metadata(self) -> Metadata:
        """The caller's metadata; the values of keys that end with `-bin` are bytes."""
        pairs: Metadata = []
        for name, value in self.fields:
            if name in _OF_TRANSPORT:
                continue
            key = name.decode("ascii")
            if key.endswith("-bin"):
                pairs += [(key, _from_base64(part)) for part in value.split(b",")]
            else:
                pairs.append((key, value.decode("utf-8", "replace")))
        return pairs


def call_head(request: RequestFields, find: Callable[[str], M | None]) -> CallHead[M]:
    """The head of a call; `find` gives the method of a path."""
    fields = dict(request.fields)
    path = request.path.decode("utf-8", "replace")
    encoding = fields.get(b"grpc-encoding", b"identity").decode("ascii", "replace")
    accepted = fields.get(b"grpc-accept-encoding", b"").decode("ascii", "replace")
    timeout = _timeout(fields.get(b"grpc-timeout"))
    method = find(path)
    return CallHead(
        path,
        method,
        request.fields,
        request.content_length,
        timeout if isinstance(timeout, float) else None,
        encoding,
        tuple(name for name in map(str.strip, accepted.split(",")) if name in ENCODINGS),
        _refusal(request, fields, encoding, timeout, method is None),
        fields.get(b"traceparent", b"").decode("utf-8", "replace"),
    )


def _refusal(
    request: RequestFields,
    fields: dict[bytes, bytes],
    encoding: str,
    timeout: float | RpcError | None,
    unknown: bool,
) -> RpcError | int | None:
    """Why a call with such a head is refused, None for a good one."""
    content_type = fields.get(b"content-type", b"").partition(b";")[0].strip().lower()
    if content_type not in _CONTENT_TYPES:
        return 415
    if request.method != b"POST":
        return 405
    if request.size > MOST_LIST_BYTES:
        reason = f"the metadata have {request.size} bytes, more than {MOST_LIST_BYTES}"
        return RpcError(Code.RESOURCE_EXHAUSTED, reason)
    if unknown:
        return RpcError(Code.UNIMPLEMENTED, "Method not found!")
    if encoding != "identity" and encoding not in ENCODINGS:
        known = ", ".join(ENCODINGS)
        return RpcError(Code.UNIMPLEMENTED, f"messages in grpc-encoding '{encoding:.40}' are unknown; use {known}")
    return timeout if isinstance(timeout, RpcError) else None


def _timeout(text: bytes | None) -> float | RpcError | None:
    """The timeout in seconds; the error for one that is malformed, and for 0, which has passed when the call comes."""
    if text is None:
        return None
    timeout = _TIMEOUT.fullmatch(text)
    if timeout is None:
        return RpcError(Code.INTERNAL, "grpc-timeout is not up to eight digits and a unit of HMSmun")
    if not int(timeout[1]):
        return RpcError(Code.DEADLINE_EXCEEDED, "Deadline Exceeded")
    return int(timeout[1]) * _UNITS[timeout[2]]


def _from_base64(text: bytes) -> bytes:
    """The bytes of base64 with or without padding; b"" for what is not base64."""
    text = text.strip().rstrip(b"=")
    try:
        return binascii.a2b_base64(text + _PADDING.get(len(text) % 4, b"="), strict_mode=True)
    except binascii.Error:
        return b""
