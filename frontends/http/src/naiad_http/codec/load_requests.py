"""Decoder of load requests: a model configuration and files in base64, which may have tens of megabytes.

A JSON parser and a base64 decoder hold the interpreter's lock until they are done, on any thread: 64 MB take 0.2 s and
0.6 s. Large strings are cut out of the JSON and decoded in pieces.
"""

import binascii
import re
import secrets
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from naiad.errors import InvalidArgumentError, TooLargeError
from naiad_http.codec.documents import as_object, as_string
from naiad_http.codec.large_documents import parse_document
from naiad_kit.frontends.parameters import load_config

PIECE_BYTES = 1 << 20
"""Bytes of base64 that are decoded at once, a multiple of four; they take 10 ms."""

_LARGE = 65536
"""Strings from this size are cut out."""

_MAX_STRINGS = 100_000
_MAX_UNCUT = 1 << 20
"""A name, or a string with escapes, of up to this size is left to the JSON parser, which takes 30 ms for it."""

_INSIDE = re.compile(rb'[^"\\]*+(?:\\.[^"\\]*+)*+', re.DOTALL)
_FILE = "file:"
_WHITE_SPACE = b" \t\r\n"
_ESCAPES = ((b"\\/", b"/"), (b"\\n", b"\n"), (b"\\r", b"\r"))
"""Escapes in base64 that some clients write. An escaped backslash stays one, and has the parser read the string."""


@dataclass(frozen=True, slots=True)
class LoadRequest:
    """The overrides of a load: the `config`, as JSON text or "", and files by their path in the model's directory."""

    config: str = ""
    files: Mapping[str, bytes] = field(default_factory=dict)


def read_load_request(body: bytes) -> LoadRequest:
    """The request of that body, which may be empty. Raises InvalidArgumentError."""
    if not body.strip():
        return LoadRequest()
    text, strings = _without_large_strings(body)
    document = as_object(parse_document(text), "request")
    for key in document:
        if key == "config" or key.startswith(_FILE):
            raise beside_parameters(key)
    config, files = "", {}
    for key, value in as_object(document.get("parameters", {}), "parameters").items():
        if key == "config":
            config = _config(value, key, strings)
        elif key.startswith(_FILE):
            files[key.removeprefix(_FILE)] = _content(_bytes(value, key, strings), key)
        else:
            raise InvalidArgumentError(
                f"unrecognized load parameter '{key[:80]}'; there are 'config' and 'file:<version>/<file name>'"
            )
    return LoadRequest(config, files)


def beside_parameters(key: str) -> InvalidArgumentError:
    """The error of a parameter that stands beside `parameters`, where it would have no effect."""
    return InvalidArgumentError(f"'{key[:80]}' belongs in 'parameters': {{\"parameters\": {{\"{key[:80]}\": ...}}}}")


def _without_large_strings(body: bytes) -> tuple[bytes, dict[str, memoryview]]:
    """The text with a random name for each large string, and the content of the string by that name."""
    if len(body) <= _LARGE:
        return body, {}
    parts: list[bytes] = []
    strings: dict[str, memoryview] = {}
    copied = offset = 0
    for _ in range(_MAX_STRINGS):
        begin = body.find(b'"', offset) + 1
        if not begin:
            return b"".join((*parts, body[copied:])), strings
        end = _end_of_string(body, begin)
        offset = end + 1
        content = _uncoded(body, begin, end) if end - begin > _LARGE else None
        if content is not None:
            name = secrets.token_hex(16)
            strings[name] = content
            parts += (body[copied:begin], name.encode())
            copied = end
    raise TooLargeError(f"a load request has more than {_MAX_STRINGS} strings; send the configuration and files alone")


def _end_of_string(body: bytes, offset: int) -> int:
    """The offset of the quote that ends the string around `offset`. Raises InvalidArgumentError without one."""
    while True:
        match = _INSIDE.match(body, offset, offset + PIECE_BYTES)
        stop = offset if match is None else match.end()
        if body[stop : stop + 1] == b'"':
            return stop
        if stop == offset:
            raise InvalidArgumentError("failed to parse the request JSON buffer: a string has no end")
        offset = stop


def _uncoded(body: bytes, begin: int, end: int) -> memoryview | None:
    """The content of a string without escapes of slashes and line ends; None with other escapes or for a name.

    Raises TooLargeError for one that would keep the JSON parser for long.
    """
    content = memoryview(body)[begin:end]
    has_escapes = body.find(b"\\", begin, end) >= 0
    if has_escapes:
        unescaped = _unescaped(body, begin, end)
        content, has_escapes = memoryview(unescaped), b"\\" in unescaped
    if not has_escapes and body[end + 1 : end + 8].lstrip()[:1] != b":":
        return content
    if end - begin > _MAX_UNCUT:
        raise TooLargeError(
            f"a name, or a string with escapes, has {end - begin} bytes in a load request; {_MAX_UNCUT} is the maximum"
        )
    return None


def _unescaped(body: bytes, begin: int, end: int) -> bytes:
    pieces: list[bytes] = []
    while begin < end:
        stop = min(begin + PIECE_BYTES, end)
        stop += body[stop - 1 : stop] == b"\\"
        piece = body[begin:stop]
        for escape, character in _ESCAPES:
            piece = piece.replace(escape, character)
        pieces.append(piece)
        begin = stop
    return b"".join(pieces)


def _config(value: Any, key: str, strings: Mapping[str, memoryview]) -> str:
    try:
        return load_config(str(_bytes(value, key, strings), "utf-8"))
    except UnicodeDecodeError as error:
        raise InvalidArgumentError(f"load parameter '{key}' is not UTF-8: {error.reason}") from error


def _bytes(value: Any, key: str, strings: Mapping[str, memoryview]) -> bytes | memoryview:
    text = as_string(value, key)
    return strings[text] if text in strings else text.encode()


def _content(text: bytes | memoryview, key: str) -> bytes:
    """The bytes of base64, which may be wrapped into lines and need not be padded, as many tools write it."""
    try:
        try:
            return _decoded(text)
        except ValueError:  # binascii.Error is one
            pieces = (bytes(text[start : start + PIECE_BYTES]) for start in range(0, len(text), PIECE_BYTES))
            return _decoded(b"".join(piece.translate(None, _WHITE_SPACE) for piece in pieces))
    except ValueError as error:
        raise InvalidArgumentError(f"load parameter '{key[:80]}' is not valid base64: {error}") from error


def _decoded(text: bytes | memoryview) -> bytes:
    pieces: list[bytes] = []
    for start in range(0, len(text), PIECE_BYTES):
        if start and len(pieces[-1]) < PIECE_BYTES // 4 * 3:
            raise binascii.Error("there is padding before the end")
        piece = text[start : start + PIECE_BYTES]
        if missing := -len(piece) % 4:
            piece = bytes(piece) + b"=" * missing
        pieces.append(binascii.a2b_base64(piece, strict_mode=True))
    return b"".join(pieces)
