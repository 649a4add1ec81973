"""Lexer of protobuf text: tokens with their line and column.

The grammar is the text format specification of Protocol Buffers (protobuf.dev/reference/protobuf/textformat-spec).
"""

import re
from bisect import bisect_right
from dataclasses import dataclass
from typing import Literal

from naiad_config.errors import ConfigError, Problem

Kind = Literal["word", "number", "string", "mark", "end"]
Position = tuple[int, int]
"""Line and column, both counted from 1."""

_TOKEN = re.compile(
    r"""
      (?P<blank>(?:[ \t\r\n\f\v]|\#[^\n]*)+)
    | (?P<word>[A-Za-z_][A-Za-z0-9_]*)
    | (?P<number>0[xX][0-9a-fA-F]+ | (?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?[fF]?)
    | (?P<string>"(?:[^"\\\n]|\\[^\n])*"|'(?:[^'\\\n]|\\[^\n])*')
    | (?P<mark>[{}<>\[\]:,;\-])
    """,
    re.VERBOSE,
)
_GLUED = re.compile(r"[A-Za-z0-9_.]")


@dataclass(frozen=True, slots=True)
class Token:
    """A piece of the text as it is written there; `kind` "end" stands behind the last one."""

    kind: Kind
    text: str
    offset: int


class Source:
    """The text of one file, cut into `tokens`. Raises ConfigError at the first character that starts no token."""

    def __init__(self, text: str, file: str) -> None:
        self.file = file
        self._line_starts = [0, *(match.end() for match in re.finditer("\n", text))]
        self.tokens = self._cut(text)

    def position(self, token: Token) -> Position:
        """Where the token starts."""
        return self._position(token.offset)

    def error(self, message: str, token: Token, hint: str = "") -> ConfigError:
        """The error that stops reading at that token."""
        return self._error(message, token.offset, hint)

    def _cut(self, text: str) -> list[Token]:
        tokens = []
        position = 1 if text.startswith("\ufeff") else 0
        while position < len(text):
            match = _TOKEN.match(text, position)
            if match is None:
                raise self._stray(text, position)
            end = match.end()
            kind = match.lastgroup
            if kind == "number" and _GLUED.match(text, end):
                raise self._error(f"'{match.group()}{text[end]}' starts no number", position)
            if kind != "blank":
                tokens.append(Token(kind, match.group(), position))  # type: ignore[arg-type]  # a group of the pattern
            position = end
        tokens.append(Token("end", "", len(text)))
        return tokens

    def _stray(self, text: str, position: int) -> ConfigError:
        character = text[position]
        if character in "\"'":
            return self._error("this string is not closed on its line", position, f"close it with {character}")
        hint = "write ':' between a key and its value" if character == "=" else ""
        return self._error(f"the character {character!r} has no meaning here", position, hint)

    def _error(self, message: str, offset: int, hint: str = "") -> ConfigError:
        line, column = self._position(offset)
        return ConfigError([Problem(message, "", self.file, line, column, hint)])

    def _position(self, offset: int) -> Position:
        line = bisect_right(self._line_starts, offset)
        return line, offset - self._line_starts[line - 1] + 1
