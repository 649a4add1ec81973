"""Model configurations as protobuf text (`config.pbtxt`): read them with every mistake named, and write them."""

from collections.abc import Mapping
from typing import Any, TypeVar

from naiad_config.errors import ConfigError, Problem
from naiad_config.fields import FieldSpec, specs
from naiad_config.lexer import Place
from naiad_config.mistakes import Mistakes, readable
from naiad_config.model import ModelConfig
from naiad_config.parsed import Parsed
from naiad_config.paths import element, entry, member
from naiad_config.scalars import read_scalar
from naiad_config.text_writer import to_text
from naiad_config.tree import Branch, Entry, Leaf, read_tree

__all__ = ["Parsed", "parse_text", "parse_text_with_places", "read_text", "to_text"]

_T = TypeVar("_T")
_ZERO: Mapping[str, str | int] = {"string": "", "uint64": 0}


def parse_text(text: str | bytes, file: str = "config.pbtxt") -> ModelConfig:
    """The configuration in protobuf text; bytes must be UTF-8. `file` is the name that problems carry.

    Raises ConfigError with every unknown key, wrong value and double key at once; a broken syntax stops at its place.
    """
    return parse_text_with_places(text, file).config


def parse_text_with_places(text: str | bytes, file: str = "config.pbtxt") -> Parsed:
    """As `parse_text`, and where each key stands, so that later checks can name the place of a problem."""
    return read_text(text, file).sound()


def read_text(text: str | bytes, file: str = "config.pbtxt") -> Parsed:
    """As much of the configuration as can be read, and what is wrong with the rest, so that more can be checked.

    Raises ConfigError for a broken syntax.
    """
    mistakes = Mistakes(file)
    reader = _Reader(mistakes)
    config = reader.message(ModelConfig, read_tree(_decoded(text, file), file), "")
    return Parsed(config, reader.places, tuple(mistakes.problems))


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
    """Turns the tree into dataclasses, noting mistakes and places on the way."""

    def __init__(self, mistakes: Mistakes) -> None:
        self.places: dict[str, Place] = {"": (1, 1)}
        self._mistakes = mistakes

    def message(self, cls: type[_T], branch: Branch, path: str) -> _T:
        fields = specs(cls)
        found: dict[str, Any] = {}
        oneofs: dict[str, str] = {}
        for given in branch.entries:
            spec = fields.get(given.key)
            here = member(path, given.key)
            if spec is None:
                self._mistakes.unknown_key(cls, given.key, here, given.place)
                continue
            self.places.setdefault(here, given.place)
            if spec.cardinality == "repeated":
                self._extend(found.setdefault(spec.attribute, []), spec, given, here)
            elif spec.cardinality == "map":
                self._put(found.setdefault(spec.attribute, {}), spec, given, here)
            elif spec.attribute in found:
                self._mistakes.repeated(given.key, here, given.place)
            else:
                self._note_oneof(oneofs, spec, given, here)
                found[spec.attribute] = self._single(spec, given, here)
        return cls(**readable(found))

    def _note_oneof(self, oneofs: dict[str, str], spec: FieldSpec, given: Entry, path: str) -> None:
        if not spec.oneof:
            return
        first = oneofs.setdefault(spec.oneof, spec.name)
        if first != spec.name:
            self._mistakes.oneof(first, spec.name, path, given.place)

    def _extend(self, values: list[Any], spec: FieldSpec, given: Entry, path: str) -> None:
        for value in given.values:
            here = element(path, len(values))
            self.places[here] = value.place if given.listed else given.place
            values.append(self._value(spec, value, here))

    def _put(self, values: dict[Any, Any], spec: FieldSpec, given: Entry, path: str) -> None:
        for pair in given.values:
            if isinstance(pair, Leaf):
                self._mistakes.add("expected an entry '{ key: … value: … }'", path, pair.place)
                continue
            place = pair.place if given.listed else given.place
            parts = self._pair(pair, path)
            key = self._value(spec.map_key, parts["key"], path) if "key" in parts else _ZERO[spec.key]
            here = entry(path, _ZERO[spec.key] if key is None else key)
            self.places[here] = place
            values[key] = self._value(spec.map_value, parts.get("value", _absent(spec, place)), here)

    def _pair(self, pair: Branch, path: str) -> dict[str, Leaf | Branch]:
        """The key and the value of a map's entry, as far as they are there."""
        parts: dict[str, Leaf | Branch] = {}
        for given in pair.entries:
            if given.key not in ("key", "value"):
                hint = "an entry of a map has 'key' and 'value'"
                self._mistakes.add(f"unknown key '{given.key}'", member(path, given.key), given.place, hint)
            elif given.key in parts:
                self._mistakes.repeated(given.key, member(path, given.key), given.place)
            elif given.listed:
                self._mistakes.add(f"'{given.key}' takes one value, not a list", member(path, given.key), given.place)
            else:
                parts[given.key] = given.values[0]
        return parts

    def _single(self, spec: FieldSpec, given: Entry, path: str) -> Any:
        if given.listed:
            self._mistakes.add(f"'{spec.name}' takes one value, not a list", path, given.place)
            return None
        return self._value(spec, given.values[0], path)

    def _value(self, spec: FieldSpec, value: Leaf | Branch, path: str) -> Any:
        if isinstance(value, Branch):
            if spec.is_message:
                return self.message(spec.type, value, path)
            self._mistakes.wrong_type(spec, "a message in braces", path, value.place)
            return None
        if spec.is_message:
            self._mistakes.wrong_type(spec, f"'{value.text}'", path, value.place)
            return None
        return read_scalar(value, spec, path, self._mistakes)


def _absent(spec: FieldSpec, place: Place) -> Leaf | Branch:
    """What an entry without a value has: an empty message or string (no map of a configuration holds anything else)."""
    return Branch((), place) if spec.is_message else Leaf("string", "", place)
