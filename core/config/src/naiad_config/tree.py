"""Parser of protobuf text: a tree of keys and values with their positions."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from naiad_config.errors import ConfigError
from naiad_config.escapes import unescape
from naiad_config.lexer import Position, Source, Token

DEEPEST = 100
"""Messages nested deeper than this are refused, as protobuf refuses them; a configuration needs seven levels."""

_CLOSING = {"{": "}", "<": ">"}


@dataclass(frozen=True, slots=True)
class Leaf:
    """A scalar value. `text` is a number or word with its sign; for a string it is the content's UTF-8 decoding."""

    kind: Literal["string", "number", "word"]
    text: str
    position: Position


@dataclass(frozen=True, slots=True)
class Branch:
    """A message value: its entries in the order of the text."""

    entries: "tuple[Entry, ...]"
    position: Position


@dataclass(frozen=True, slots=True)
class Entry:
    """A key with its values: one, or any number when they were `listed` in brackets."""

    key: str
    position: Position
    values: tuple[Leaf | Branch, ...]
    listed: bool


def _opening(tokens: Sequence[Token]) -> Token | None:
    """The innermost bracket of these tokens that is still open."""
    opened: list[Token] = []
    for token in tokens:
        if token.kind == "mark" and token.text in "{[<":
            opened.append(token)
        elif token.kind == "mark" and token.text in "}]>" and opened:
            opened.pop()
    return opened[-1] if opened else None


def read_tree(text: str, file: str) -> Branch:
    """The tree of the whole text. Raises ConfigError at the first syntax error."""
    return _Reader(Source(text, file)).read()


class _Reader:
    """Recursive descent over the tokens; `_position` is the token to be read next."""

    def __init__(self, source: Source) -> None:
        self._source = source
        self._tokens = source.tokens
        self._position = 0

    def read(self) -> Branch:
        return Branch(self._entries("", 0), (1, 1))

    def _entries(self, closing: str, depth: int) -> tuple[Entry, ...]:
        if depth > DEEPEST:
            raise self._error(f"messages are nested deeper than {DEEPEST} levels")
        entries: list[Entry] = []
        while not self._at_end(closing):
            entries.append(self._entry(depth, closing, entries[-1].key if entries else ""))
            if self._now.text in (",", ";") and self._now.kind == "mark":
                self._position += 1
        return tuple(entries)

    def _at_end(self, closing: str) -> bool:
        token = self._now
        if token.kind == "end":
            if closing:
                line, column = self._source.position(_opening(self._tokens) or token)
                raise self._error(f"the file ends before '{closing}' closes the message that begins at {line}:{column}")
            return True
        if token.kind == "mark" and token.text == closing:
            self._position += 1
            return True
        return False

    def _entry(self, depth: int, closing: str, previous: str) -> Entry:
        key = self._take()
        if key.kind != "word":
            raise self._source.error(f"expected a key, found {_shown(key)}{self._hint(key, closing, previous)}", key)
        colon = self._skip(":")
        if self._now.kind == "mark" and self._now.text == "[":
            return Entry(key.text, self._source.position(key), self._list(colon, depth), listed=True)
        if not colon and not self._opens_message():
            raise self._error(f"expected ':' or '{{' after the key '{key.text}', found {_shown(self._now)}")
        return Entry(key.text, self._source.position(key), (self._value(depth),), listed=False)

    def _hint(self, key: Token, closing: str, previous: str) -> str:
        """The message that is still open, where another bracket closes it, or the list that lacks its brackets.

        `previous` is the key before the token that is no key.
        """
        if closing and key.kind == "mark" and key.text in "}]>":
            opening = _opening(self._tokens[: self._position - 1])
            if opening is None:
                return ""
            line, column = self._source.position(opening)
            return f": the '{opening.text}' of {line}:{column} is still open; close it with '{closing}'"
        if self._position > 1 and self._tokens[self._position - 2].text == "," and key.kind in ("number", "string"):
            if previous in _lists():
                return "; write several values in brackets, as dims: [4, 8]"
            return f"; '{previous}' takes one value"
        return _other_language(self._tokens, self._position - 1)

    def _list(self, colon: bool, depth: int) -> tuple[Leaf | Branch, ...]:
        opening = self._take()
        if self._skip("]"):
            return ()
        values: list[Leaf | Branch] = []
        while True:
            if not colon and not self._opens_message():
                raise self._error("a list of plain values needs ':' between its key and '['")
            values.append(self._value(depth))
            if self._skip("]"):
                return tuple(values)
            if not self._skip(","):
                line, column = self._source.position(opening)
                raise self._error(
                    f"expected ',' or ']' in the list that begins at {line}:{column}, found {_shown(self._now)}"
                )

    def _opens_message(self) -> bool:
        return self._now.kind == "mark" and self._now.text in _CLOSING

    def _value(self, depth: int) -> Leaf | Branch:
        if self._opens_message():
            opening = self._take()
            return Branch(self._entries(_CLOSING[opening.text], depth + 1), self._source.position(opening))
        return self._leaf()

    def _leaf(self) -> Leaf:
        token = self._take()
        position = self._source.position(token)
        if token.kind == "string":
            return Leaf("string", self._string(token), position)
        sign = ""
        if token.kind == "mark" and token.text == "-":
            sign, token = "-", self._take()
        if token.kind == "number":
            return Leaf("number", sign + token.text, position)
        if token.kind == "word":
            return Leaf("word", sign + token.text, position)
        raise self._source.error(f"expected a value, found {_shown(token)}", token)

    def _string(self, first: Token) -> str:
        """The content of adjacent string literals, joined."""
        content = self._content(first)
        while self._now.kind == "string":
            content += self._content(self._take())
        try:
            return content.decode()
        except UnicodeDecodeError:
            raise self._source.error("the bytes of this string are not UTF-8", first) from None

    def _content(self, token: Token) -> bytes:
        try:
            return unescape(token.text[1:-1])
        except ValueError as error:
            raise self._source.error(str(error), token) from None

    @property
    def _now(self) -> Token:
        return self._tokens[self._position]

    def _take(self) -> Token:
        token = self._tokens[self._position]
        if token.kind != "end":
            self._position += 1
        return token

    def _skip(self, mark: str) -> bool:
        matches = self._now.kind == "mark" and self._now.text == mark
        self._position += matches
        return matches

    def _error(self, message: str) -> ConfigError:
        return self._source.error(message, self._now)


def _lists() -> set[str]:
    """The keys that take a list of values in some message."""
    from naiad_config.fields import classes_of, specs  # the parser needs the messages for this hint alone
    from naiad_config.model import ModelConfig

    of_messages = (specs(cls).values() for cls in classes_of(ModelConfig))
    return {spec.name for fields in of_messages for spec in fields if spec.cardinality == "repeated"}


def _other_language(tokens: Sequence[Token], position: int) -> str:
    """What to write where the token that is no key is as in JSON or YAML."""
    text = tokens[position].text
    if position == 0 and text in ("{", "["):
        return '; this is not JSON: write name: "m", without outer braces and quoted keys'
    before = [token.text for token in tokens[max(0, position - 2) : position]]
    if text == "-" or (text == ":" and before[:1] == ["-"]):
        return '; this is not YAML: write a list of messages as input [ { name: "x" } ]'
    return ""


def _shown(token: Token) -> str:
    return "the end of the file" if token.kind == "end" else f"'{token.text}'"
