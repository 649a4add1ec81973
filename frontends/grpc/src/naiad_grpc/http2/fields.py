"""Header fields of requests: the rules of RFC 9113, section 8, which a request must keep."""

import re
from collections.abc import Iterable
from dataclasses import dataclass

Fields = list[tuple[bytes, bytes]]

_PSEUDO = (b":method", b":scheme", b":path", b":authority")
_NAME = re.compile(rb"[!#$%&'*+\-.^_`|~0-9a-z]+")
_BAD_VALUE = re.compile(rb"[\x00\r\n]")
_BLANKS = b" \t"
_OF_CONNECTION = frozenset((b"connection", b"keep-alive", b"proxy-connection", b"transfer-encoding", b"upgrade"))


class MalformedFieldsError(Exception):
    """Header fields that break a rule: a stream error PROTOCOL_ERROR."""


@dataclass(frozen=True, slots=True)
class RequestFields:
    """The header fields of a request: the pseudo-header fields, and the others in their order.

    `size` is that of the list in bytes, with 32 for each field. `content_length` is -1 without that field.
    """

    method: bytes
    scheme: bytes
    path: bytes
    authority: bytes
    fields: tuple[tuple[bytes, bytes], ...]
    content_length: int
    size: int


def request_fields(fields: Fields) -> RequestFields:
    """The checked fields of a request. Raises MalformedFieldsError.

    HTTP/2 forbids blanks around values. Clients of gRPC send what they are given as metadata, and servers may strip it
    (PROTOCOL-HTTP2.md, ASCII-Value).
    """
    pseudo: dict[bytes, bytes] = {}
    regular: list[tuple[bytes, bytes]] = []
    for name, value in fields:
        if name.startswith(b":"):
            if regular or name in pseudo or name not in _PSEUDO:
                raise MalformedFieldsError(f"the pseudo-header {name!r} is unknown, repeated or late")
            pseudo[name] = value
            _check_value(value)
        else:
            _check_field(name, value)
            regular.append((name, value.strip(_BLANKS)))
    if not all(pseudo.get(name) for name in _PSEUDO[:3]):
        raise MalformedFieldsError("the request lacks :method, :scheme or :path")
    size = sum(len(name) + len(value) + 32 for name, value in fields)
    method, scheme, path, authority = (pseudo.get(name, b"") for name in _PSEUDO)
    return RequestFields(method, scheme, path, authority, tuple(regular), _content_length(regular), size)


def check_trailers(fields: Fields) -> None:
    """Check the fields of a trailer section. Raises MalformedFieldsError."""
    for name, value in fields:
        _check_field(name, value)


def _check_field(name: bytes, value: bytes) -> None:
    if _NAME.fullmatch(name) is None:
        raise MalformedFieldsError(f"{name!r} is not a field name of HTTP/2")
    if name in _OF_CONNECTION or (name == b"te" and value.lower() != b"trailers"):
        raise MalformedFieldsError(f"the field {name!r} belongs to HTTP/1 connections")
    _check_value(value)


def _check_value(value: bytes) -> None:
    if _BAD_VALUE.search(value):
        raise MalformedFieldsError(f"{value[:80]!r} is not a field value")


def _content_length(fields: Iterable[tuple[bytes, bytes]]) -> int:
    lengths = {value for name, value in fields if name == b"content-length"}
    if not lengths:
        return -1
    (length,) = lengths if len(lengths) == 1 else (b"",)
    if not length.isdigit() or len(length) > 18:
        raise MalformedFieldsError(f"content-length {length!r} is not a number")
    return int(length)
