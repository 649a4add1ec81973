r"""Strings of protobuf text: turn escapes such as `\n`, `\101`, `\x41` and `\u00e9` into bytes, and back."""

import re

_SIMPLE = {
    "a": b"\a", "b": b"\b", "f": b"\f", "n": b"\n", "r": b"\r", "t": b"\t", "v": b"\v",
    "\\": b"\\", "'": b"'", '"': b'"', "?": b"?",
}  # fmt: skip
_ESCAPE = re.compile(
    r"\\(?:([abfnrtv\\'\"?])|([0-7]{1,3})|[xX]([0-9a-fA-F]{1,2})|u([0-9a-fA-F]{4})|U([0-9a-fA-F]{8})|(.?))"
)
_TO_ESCAPE = re.compile(r'[\\"\x00-\x1f\x7f]')
_SHORT = {"\\": "\\\\", '"': '\\"', "\n": "\\n", "\r": "\\r", "\t": "\\t"}


def unescape(literal: str) -> bytes:
    """The bytes that a string literal (without its quotes) stands for. Raises ValueError naming an unknown escape."""
    if "\\" not in literal:
        return literal.encode()
    parts: list[bytes] = []
    end = 0
    for match in _ESCAPE.finditer(literal):
        parts += literal[end : match.start()].encode(), _bytes_of(match)
        end = match.end()
    return b"".join([*parts, literal[end:].encode()])


def quoted(content: str) -> str:
    """A string literal in double quotes; control characters become escapes, everything else stays readable."""
    return f'"{_TO_ESCAPE.sub(_escaped, content)}"'


def _bytes_of(match: re.Match[str]) -> bytes:
    simple, octal, hexadecimal, short, long, _ = match.groups()
    if simple:
        return _SIMPLE[simple]
    if octal and int(octal, 8) < 256:
        return bytes([int(octal, 8)])
    if hexadecimal:
        return bytes([int(hexadecimal, 16)])
    if short or long:
        return _character(int(short or long, 16), match.group())
    raise ValueError(f"this string has the unknown escape '{match.group()}'; write '\\\\' for a backslash")


def _character(code: int, escape: str) -> bytes:
    if code > 0x10FFFF or 0xD800 <= code <= 0xDFFF:
        raise ValueError(f"the escape '{escape}' of this string is not a character")
    return chr(code).encode()


def _escaped(match: re.Match[str]) -> str:
    character = match.group()
    return _SHORT.get(character) or f"\\{ord(character):03o}"
