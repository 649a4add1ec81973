"""Writer of protobuf text in one canonical form: two blanks per level, defaults omitted."""

from collections.abc import Iterator, Mapping
from enum import IntEnum
from typing import Any

from naiad_config.escapes import quoted
from naiad_config.fields import FieldSpec, specs
from naiad_config.model import ModelConfig


def to_text(config: ModelConfig) -> str:
    """The configuration as protobuf text, which reads back equal; empty for a configuration of defaults."""
    return "".join(f"{line}\n" for line in _message(config))


def _message(message: Any) -> Iterator[str]:
    for spec in specs(type(message)).values():
        value = getattr(message, spec.attribute)
        if spec.cardinality == "map":
            yield from _map(spec, value)
        elif spec.cardinality == "repeated":
            yield from _repeated(spec, value)
        elif _is_set(spec, value):
            yield from _single(spec, value)


def _is_set(spec: FieldSpec, value: Any) -> bool:
    """Whether the field has to be written: messages and members of a oneof know absence, other scalars a default."""
    if spec.is_message or spec.oneof:
        return value is not None
    return value not in (0, "") or str(value) == "-0.0"


def _single(spec: FieldSpec, value: Any) -> Iterator[str]:
    if spec.is_message:
        yield from _braces(spec.name, _message(value))
    else:
        yield f"{spec.name}: {_scalar(value)}"


def _repeated(spec: FieldSpec, values: Any) -> Iterator[str]:
    if spec.is_message:
        for value in values:
            yield from _braces(spec.name, _message(value))
    elif values:
        yield f"{spec.name}: [ {', '.join(map(_scalar, values))} ]"


def _map(spec: FieldSpec, values: Mapping[Any, Any]) -> Iterator[str]:
    for key, value in values.items():
        yield from _braces(spec.name, [f"key: {_scalar(key)}", *_single(spec.map_value, value)])


def _braces(name: str, lines: Any) -> Iterator[str]:
    inner = [f"  {line}" for line in lines]
    if not inner:
        yield f"{name} {{ }}"
        return
    yield f"{name} {{"
    yield from inner
    yield "}"


def _scalar(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, IntEnum):
        return value.name
    if isinstance(value, str):
        return quoted(value)
    return repr(value)
