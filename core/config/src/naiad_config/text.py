"""Text form of model configurations (`config.pbtxt`): reads with all mistakes at once, and writes."""

from collections.abc import Mapping
from typing import Any, TypeVar

from naiad_config.errors import ConfigError, Problem
from naiad_config.fields import FieldSpec, specs
from naiad_config.lexer import Position
from naiad_config.mistakes import Mistakes, readable
from naiad_config.model import ModelConfig
from naiad_config.parsed import Parsed
from naiad_config.paths import element, entry, member
from naiad_config.scalars import read_scalar
from naiad_config.text_writer import to_text
from naiad_config.tree import Branch, Entry, Leaf, read_tree

__all__ = ["Parsed", "parse_text", "parse_text_with_positions", "read_text", "to_text"]

_T = TypeVar("_T")
_ZERO: Mapping[str, str | int] = {"string": "", "uint64": 0}


def parse_text(text: str | bytes, file: str = "config.pbtxt") -> ModelConfig:
    """The configuration in protobuf text; bytes must be UTF-8. `file` is the name that problems carry.

    Raises ConfigError with every unknown key, wrong value and double key at once; a syntax error is the last one.
    """
    return parse_text_with_positions(text, file).config


def parse_text_with_positions(text: str | bytes, file: str = "config.pbtxt") -> Parsed:
    """As `parse_text`, with the position of each key, so that later checks can name that of a problem."""
    return read_text(text, file).sound()


def read_text(text: str | bytes, file: str = "config.pbtxt") -> Parsed:
    """As much of the configuration as can be read, and what is wrong with the rest, so that more can be checked.

    Raises ConfigError for a broken syntax.
    """
    mistakes = Mistakes(file)
    reader = _Reader(mistakes)
    config = reader.message(ModelConfig, read_tree(_decoded(text, file), file), "")
    return Parsed(config, reader.positions, tuple(mistakes.problems))


def _decoded(text: str | bytes, file: str) -> str:
    if isinstance(text, str):
        return text
    try:
        return text.decode()
    except UnicodeDecodeError as error:
        line = text.count(b"\n", 0, error.start) + 1
        column = error.start - text.rfind(b"\n", 0, error.start)
        message = f"byte 0x{text[error.start]:02x} is not UTF-8"
        raise ConfigError([Problem(message, "", file, line, column, "save the file as UTF-8 text")]) from None


class _Reader:
    """Turns the tree into dataclasses, noting mistakes and positions."""

    def __init__(self, mistakes: Mistakes) -> None:
        self.positions: dict[str, Position] = {"": (1, 1)}
        self._mistakes = mistakes

    def message(self, cls: type[_T], branch: Branch, path: str) -> _T:
        fields = specs(cls)
        values: dict[str, Any] = {}
        oneofs: dict[str, str] = {}
        for item in branch.entries:
            spec = fields.get(item.key)
            here = member(path, item.key)
            if spec is None:
                self._mistakes.unknown_key(cls, item.key, here, item.position)
                continue
            self.positions.setdefault(here, item.position)
            if spec.cardinality == "repeated":
                self._extend(values.setdefault(spec.attribute, []), spec, item, here)
            elif spec.cardinality == "map":
                self._put(values.setdefault(spec.attribute, {}), spec, item, here)
            elif spec.attribute in values:
                self._mistakes.repeated(item.key, here, item.position)
            else:
                self._note_oneof(oneofs, spec, item, here)
                values[spec.attribute] = self._single(spec, item, here)
        return cls(**readable(values))

    def _note_oneof(self, oneofs: dict[str, str], spec: FieldSpec, item: Entry, path: str) -> None:
        if not spec.oneof:
            return
        first = oneofs.setdefault(spec.oneof, spec.name)
        if first != spec.name:
            self._mistakes.oneof(first, spec.name, path, item.position)

    def _extend(self, values: list[Any], spec: FieldSpec, item: Entry, path: str) -> None:
        for value in item.values:
            here = element(path, len(values))
            self.positions[here] = value.position if item.listed else item.position
            values.append(self._value(spec, value, here))

    def _put(self, values: dict[Any, Any], spec: FieldSpec, item: Entry, path: str) -> None:
        for pair in item.values:
            if isinstance(pair, Leaf):
                self._mistakes.add("expected an entry '{ key: … value: … }'", path, pair.position)
                continue
            position = pair.position if item.listed else item.position
            parts = self._pair(pair, path)
            key = self._value(spec.map_key, parts["key"], path) if "key" in parts else _ZERO[spec.key]
            here = entry(path, _ZERO[spec.key] if key is None else key)
            self.positions[here] = position
            values[key] = self._value(spec.map_value, parts.get("value", _absent(spec, position)), here)

    def _pair(self, pair: Branch, path: str) -> dict[str, Leaf | Branch]:
        """The key and the value of a map's entry, as far as they are there."""
        parts: dict[str, Leaf | Branch] = {}
        for item in pair.entries:
            if item.key not in ("key", "value"):
                hint = "an entry of a map has 'key' and 'value'"
                self._mistakes.add(f"unknown key '{item.key}'", member(path, item.key), item.position, hint)
            elif item.key in parts:
                self._mistakes.repeated(item.key, member(path, item.key), item.position)
            elif item.listed:
                self._mistakes.add(f"'{item.key}' takes one value, not a list", member(path, item.key), item.position)
            else:
                parts[item.key] = item.values[0]
        return parts

    def _single(self, spec: FieldSpec, item: Entry, path: str) -> Any:
        if item.listed:
            self._mistakes.add(f"'{spec.name}' takes one value, not a list", path, item.position)
            return None
        return self._value(spec, item.values[0], path)

    def _value(self, spec: FieldSpec, value: Leaf | Branch, path: str) -> Any:
        if isinstance(value, Branch):
            if spec.is_message:
                return self.message(spec.type, value, path)
            self._mistakes.wrong_type(spec, "a message in braces", path, value.position)
            return None
        if spec.is_message:
            self._mistakes.wrong_type(spec, f"'{value.text}'", path, value.position)
            return None
        return read_scalar(value, spec, path, self._mistakes)


def _absent(spec: FieldSpec, position: Position) -> Leaf | Branch:
    """What an entry without a value has: an empty message or string (no map of a configuration holds anything else)."""
    return Branch((), position) if spec.is_message else Leaf("string", "", position)
