"""Trace settings that clients may change: level, rate, count and log frequency; read and validated."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from naiad.errors import InvalidArgumentError, UnsupportedError

LEVELS = ("TIMESTAMPS", "TENSORS")
OFF = "OFF"
_LARGEST = 2**32 - 1
_FIELDS = {"trace_level": "levels", "trace_rate": "rate", "trace_count": "count", "log_frequency": "log_frequency"}


@dataclass(frozen=True, slots=True)
class Selection:
    """Every `rate`-th request is traced (0: none but those whose caller asks for it), until `count` were (-1: no end).

    No `levels` is OFF. `log_frequency` is how many traces a file takes; 0: all are in one.
    """

    levels: tuple[str, ...] = ()
    rate: int = 1000
    count: int = -1
    log_frequency: int = 0

    def as_settings(self) -> dict[str, str | tuple[str, ...]]:
        """The settings as the trace extension writes them."""
        return {
            "trace_level": self.levels or (OFF,),
            "trace_rate": str(self.rate),
            "trace_count": str(self.count),
            "log_frequency": str(self.log_frequency),
        }

    def changed(self, own: Mapping[str, Any]) -> "Selection":
        """This selection, but for the fields that a narrower scope sets itself."""
        return replace(self, **own)


def read_changes(changes: Mapping[str, Sequence[str] | None], fixed: Mapping[str, str]) -> dict[str, Any]:
    """The changed fields of `Selection`; None stands for a field that is cleared.

    `fixed` are the settings that only the command line sets, with their values: naming one is harmless as long as it
    stays the same. Raises InvalidArgumentError and UnsupportedError.
    """
    read: dict[str, Any] = {}
    for name, values in changes.items():
        if name == "trace_file":
            raise UnsupportedError(
                "trace file location can not be updated through network protocol; "
                "only --trace-config triton,file=FILE sets it"
            )
        if name in fixed:
            _refuse_change(name, values, fixed[name])
        elif name not in _FIELDS:
            raise InvalidArgumentError(f"unknown trace setting '{name[:80]}'; those to change are {', '.join(_FIELDS)}")
        else:
            read[_FIELDS[name]] = _value(name, values) if values else None
    return read


def read_levels(values: Sequence[str]) -> tuple[str, ...]:
    """The levels of these words, each once; () for OFF. Raises InvalidArgumentError."""
    for value in values:
        if value not in (OFF, *LEVELS):
            raise InvalidArgumentError(f"unknown trace_level '{value[:80]}'; the levels are OFF, {', '.join(LEVELS)}")
    if OFF in values and len(values) > 1:
        raise InvalidArgumentError(
            "Expect only one trace level 'OFF' is specified; leave it out or leave the others out"
        )
    return tuple(level for level in LEVELS if level in values)


def read_number(name: str, text: str, least: int = 0) -> int:
    """A whole number of a setting. Raises InvalidArgumentError that names it."""
    sign, digits = ("-", text[1:]) if text[:1] == "-" else ("", text)
    if not (digits.isascii() and digits.isdigit() and len(digits) <= 20):
        raise InvalidArgumentError(f"Unable to parse '{name}', got: {text[:80]}; it must be a whole number")
    number = int(sign + digits)
    if number < least:
        raise InvalidArgumentError(f"Unable to parse '{name}'. Expecting value >= {least}, got:{text}")
    if number > _LARGEST:
        raise InvalidArgumentError(
            f"Unable to parse '{name}', value is out of range [ {least}, {_LARGEST} ], got: {text}"
        )
    return number


def _value(name: str, values: Sequence[str]) -> Any:
    if name == "trace_level":
        return read_levels(values)
    if len(values) != 1:
        raise InvalidArgumentError(f"expect one value for '{name}', got {len(values)}")
    return read_number(name, values[0], least=-1 if name == "trace_count" else 0)


def _refuse_change(name: str, values: Sequence[str] | None, now: str) -> None:
    if list(values or ()) != [now]:
        raise UnsupportedError(
            f"trace setting '{name}' is '{now}' and can not be updated through network protocol; "
            "only --trace-config sets it"
        )
