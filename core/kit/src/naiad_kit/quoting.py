"""Quoting of texts of clients for logs: on one line, and without letters that terminals act on."""

from json.encoder import encode_basestring

_CONTROLS = {*range(0x20), *range(0x7F, 0xA0), 0x2028, 0x2029} - {ord("\t")}
"""Control letters of ASCII and of Unicode (U+009B begins an escape sequence), and Unicode's ends of lines.

A tab is harmless: it indents a traceback.
"""

_ESCAPED = {code: f"\\u{code:04x}" for code in _CONTROLS}


def quoted(text: str) -> str:
    """The text as a JSON string without control letters, ends of lines among them; other letters stay as they are."""
    return without_controls(encode_basestring(text))


def without_controls(line: str) -> str:
    """A line with its control letters escaped, but for tabs."""
    return line if line.isprintable() else line.translate(_ESCAPED)
