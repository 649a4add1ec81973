"""JSON form of model configurations: reads load overrides and auto-completed configurations, writes responses.

The mapping is protobuf's (protobuf.dev/programming-guides/json), with the fields under their names in the .proto file.
"""

import json
from collections import Counter
from collections.abc import Mapping
from typing import Any, TypeVar

from naiad_config.errors import ConfigError, Problem
from naiad_config.fields import FieldSpec, specs
from naiad_config.json_scalars import read_scalar, shown
from naiad_config.json_writer import to_json
from naiad_config.mistakes import Mistakes, readable
from naiad_config.model import ModelConfig
from naiad_config.parsed import Parsed
from naiad_config.paths import element, entry, member

__all__ = ["parse_json", "read_json", "to_json"]

_T = TypeVar("_T")


def parse_json(text: str | bytes | Mapping[str, Any], file: str = "JSON") -> ModelConfig:
    """The configuration in a JSON document, or in its object when it was read already.

    Enums may be written in any case or as numbers, integers as numbers or strings, keys also in lowerCamelCase; null
    leaves a field unset. Raises ConfigError with every unknown key and wrong value at once; `file` is the name that
    problems carry.
    """
    return read_json(text, file).sound().config


def read_json(text: str | bytes | Mapping[str, Any], file: str = "JSON") -> Parsed:
    """As much of the configuration as can be read, and what is wrong with the rest, so that more can be checked.

    Raises ConfigError for a broken syntax.
    """
    values = text if isinstance(text, Mapping) else _document(text, file)
    mistakes = Mistakes(file)
    if not isinstance(values, Mapping):
        mistakes.add("a model configuration is a JSON object", hint="start it with '{'")
        values = {}
    config = _Reader(mistakes).message(ModelConfig, values, "")
    return Parsed(config, problems=tuple(mistakes.problems))


def _document(text: str | bytes, file: str) -> Any:
    try:
        document = json.loads(text, object_pairs_hook=_without_doubles, parse_constant=_no_constant)
        json.dumps(document, ensure_ascii=False).encode()
        return document
    except json.JSONDecodeError as error:
        problem = Problem(f"broken JSON: {error.msg}", "", file, error.lineno, error.colno)
    except UnicodeDecodeError as error:
        problem = Problem(f"the JSON is not UTF-8: {error.reason} at byte {error.start}", "", file)
    except UnicodeEncodeError:
        problem = Problem("the JSON has half of a surrogate pair, which UTF-8 cannot carry", "", file)
    except RecursionError:
        problem = Problem("the JSON is nested too deep", "", file, hint="a model configuration has seven levels")
    except ValueError as error:
        problem = Problem(f"broken JSON: {error}", "", file)
    raise ConfigError([problem])


def _without_doubles(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    values = dict(pairs)
    if len(values) < len(pairs):
        [(double, _)] = Counter(name for name, _ in pairs).most_common(1)
        raise ValueError(f"the key '{double}' is given twice in one object")
    return values


def _no_constant(name: str) -> None:
    raise ValueError(f'{name} is not a JSON number; write it as a string, "{name}"')


def _camel(name: str) -> str:
    first, *rest = name.split("_")
    return first + "".join(part.capitalize() for part in rest)


class _Reader:
    """Turns JSON objects into dataclasses, noting mistakes on the way."""

    def __init__(self, mistakes: Mistakes) -> None:
        self._mistakes = mistakes
        self._fields: dict[type, Mapping[str, FieldSpec]] = {}

    def message(self, cls: type[_T], content: Mapping[str, Any], path: str) -> _T:
        fields = self._fields_of(cls)
        values: dict[str, Any] = {}
        oneofs: dict[str, str] = {}
        for key, value in content.items():
            spec = fields.get(key)
            here = member(path, key)
            if spec is None:
                self._mistakes.unknown_key(cls, key, here)
            elif value is None:
                continue
            elif spec.attribute in values:
                self._mistakes.repeated(spec.name, here)
            else:
                self._note_oneof(oneofs, spec, here)
                values[spec.attribute] = self._field(spec, value, here)
        return cls(**readable(values))

    def _fields_of(self, cls: type) -> Mapping[str, FieldSpec]:
        """The fields of a message under both names that JSON may have for each."""
        if cls not in self._fields:
            self._fields[cls] = {_camel(spec.name): spec for spec in specs(cls).values()} | dict(specs(cls))
        return self._fields[cls]

    def _note_oneof(self, oneofs: dict[str, str], spec: FieldSpec, path: str) -> None:
        first = oneofs.setdefault(spec.oneof, spec.name) if spec.oneof else spec.name
        if first != spec.name:
            self._mistakes.oneof(first, spec.name, path)

    def _field(self, spec: FieldSpec, value: Any, path: str) -> Any:
        if spec.cardinality == "optional":
            return self._value(spec, value, path)
        if spec.cardinality == "repeated":
            if isinstance(value, list | tuple):
                return tuple(self._value(spec, one, element(path, index)) for index, one in enumerate(value))
            self._mistakes.add(f"expected a JSON array, found {shown(value)}", path)
            return None
        if isinstance(value, Mapping):
            return self._map(spec, value, path)
        self._mistakes.add(f"expected a JSON object, found {shown(value)}", path)
        return None

    def _map(self, spec: FieldSpec, content: Mapping[str, Any], path: str) -> dict[Any, Any]:
        values = {}
        for name, value in content.items():
            key = read_scalar(name, spec.map_key, path, self._mistakes)
            values[key] = self._value(spec, value, entry(path, name if key is None else key))
        return values

    def _value(self, spec: FieldSpec, value: Any, path: str) -> Any:
        if not spec.is_message:
            return read_scalar(value, spec, path, self._mistakes)
        if isinstance(value, Mapping):
            return self.message(spec.type, value, path)
        self._mistakes.add(f"expected a JSON object, found {shown(value)}", path)
        return None
