"""Arrivals for a simulation: generated from a short text, or recorded in a file."""

import csv
import json
import math
import random
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from naiad.errors import InvalidArgumentError
from naiad.options import boolean
from naiad_testing.history import Arrival

FORMS = "poisson:RATE, uniform:RATE, burst:N@EVERY_MS or a .csv or .jsonl file of recorded arrivals"
"""What `arrivals_of` understands; a rate is in requests a second."""

DURATION = 10.0
"""How many seconds of arrivals are made up where nothing else is said."""


def arrivals_of(text: str, duration: float | None, chance: random.Random) -> list[Arrival]:
    """The arrivals of `duration` seconds that the text asks for, in the order of their times; see `FORMS`.

    Without a duration all that were recorded, or `DURATION` seconds of others.
    Raises InvalidArgumentError for any other text, and for a file with the line that is wrong.
    """
    if Path(text).suffix.lower() in (".csv", ".jsonl"):
        limit = math.inf if duration is None else duration
        return [arrival for arrival in recorded(Path(text)) if arrival.time < limit]
    duration = duration or DURATION
    kind, _, rest = text.partition(":")
    if kind == "poisson":
        return list(_poisson(_positive(rest, text), duration, chance))
    if kind == "uniform":
        rate = _positive(rest, text)
        return [Arrival(number / rate) for number in range(math.ceil(duration * rate))]
    if kind == "burst":
        count, _, every = rest.partition("@")
        return list(_bursts(_positive(count, text), _positive(every, text) / 1e3, duration))
    raise InvalidArgumentError(f"arrivals '{text}' are none of {FORMS}")


def recorded(file: Path) -> list[Arrival]:
    """The arrivals of a CSV file with a header or a JSON-lines file, sorted, the first of them at time 0.

    `time`, in seconds, is required; `batch_size`, `priority`, `timeout_microseconds`, `shape` (equal for requests that
    may share a batch), `leaves_after` (seconds until the caller goes away), `sequence_id`, `sequence_start`,
    `sequence_end`, `streams` (seconds of responses after its batch) and `returns` (how often the model asks to see it
    again) are not. An empty value is as none; an id of digits is a number, unless JSON quotes it.
    Raises InvalidArgumentError with file and line.
    """
    try:
        rows = list(_csv_rows(file) if file.suffix.lower() == ".csv" else _json_rows(file))
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise InvalidArgumentError(f"the arrivals in {file} cannot be read: {error}") from error
    arrivals = sorted((_arrival(row, location) for location, row in rows), key=lambda arrival: arrival.time)
    start = arrivals[0].time if arrivals else 0.0
    return [
        replace(each, time=each.time - start, leaves=None if each.leaves is None else each.leaves - start)
        for each in arrivals
    ]


def in_sequences(arrivals: Iterable[Arrival], at_once: int, length: int, text_ids: bool = False) -> list[Arrival]:
    """The same arrivals as requests of sequences of that length, of which `at_once` take turns.

    The next sequence of a turn begins after the last request of the one before it. Ids count from 1.
    """
    dealt = []
    for number, arrival in enumerate(arrivals):
        message, turn = divmod(number, at_once)
        name = message // length * at_once + turn + 1
        start, end = message % length == 0, message % length == length - 1
        dealt.append(
            replace(arrival, sequence_id=str(name) if text_ids else name, sequence_start=start, sequence_end=end)
        )
    return dealt


def _poisson(rate: float, duration: float, chance: random.Random) -> Iterator[Arrival]:
    now = chance.expovariate(rate)
    while now < duration:
        yield Arrival(now)
        now += chance.expovariate(rate)


def _bursts(count: float, every: float, duration: float) -> Iterator[Arrival]:
    for number in range(math.ceil(duration / every)):
        yield from [Arrival(number * every)] * int(count)


def _positive(text: str, whole: str) -> float:
    try:
        number = float(text)
    except ValueError:
        number = 0.0
    if not 0 < number < math.inf:
        raise InvalidArgumentError(f"arrivals '{whole}' need a positive number where '{text}' stands: {FORMS}")
    return number


def _csv_rows(file: Path) -> Iterator[tuple[str, Mapping[str, Any]]]:
    with file.open(newline="", encoding="utf-8-sig") as lines:
        reader = csv.DictReader(lines, skipinitialspace=True)
        for row in reader:
            if None in row:
                raise InvalidArgumentError(f"{file}:{reader.line_num} has more values than the header has columns")
            name = row.get("sequence_id") or ""
            yield f"{file}:{reader.line_num}", row | ({"sequence_id": int(name)} if name.isdecimal() else {})


def _json_rows(file: Path) -> Iterator[tuple[str, Mapping[str, Any]]]:
    for number, line in enumerate(file.read_text(encoding="utf-8").splitlines(), 1):
        if not line.strip():
            continue
        try:
            row = json.loads(line)
        except ValueError as error:
            raise InvalidArgumentError(f"{file}:{number} is not JSON: {error}") from error
        if not isinstance(row, dict):
            raise InvalidArgumentError(f'{file}:{number} is not a JSON object such as {{"time": 0.25}}')
        yield f"{file}:{number}", row


def _arrival(row: Mapping[str, Any], location: str) -> Arrival:
    values = {name: _value(name, text, location) for name, text in row.items() if text not in ("", None)}
    if "time" not in values:
        raise InvalidArgumentError(f"{location} lacks a time, in seconds")
    leaves_after = values.pop("leaves_after", None)
    timeout = values.pop("timeout_microseconds", 0) / 1e6
    leaves = None if leaves_after is None else values["time"] + leaves_after
    return Arrival(shape_key=values.pop("shape", None), timeout=timeout, leaves=leaves, **values)


def _value(name: str, text: Any, location: str) -> Any:
    if name not in _COLUMNS:
        nearest = get_close_matches(name, _COLUMNS, 1)
        hint = f"did you mean {nearest[0]}?" if nearest else f"the columns are {', '.join(_COLUMNS)}"
        raise InvalidArgumentError(f"{location} has an unknown column '{name}'; {hint}")
    try:
        return _COLUMNS[name](text)
    except (TypeError, ValueError):
        raise InvalidArgumentError(f"{location}: '{text}' is not a valid {name}") from None


def _number(least: int) -> Callable[[Any], int]:
    def read(value: Any) -> int:
        number = int(str(value))
        if number < least:
            raise ValueError(value)
        return number

    return read


def _seconds(value: Any) -> float:
    seconds = float(value)
    if not math.isfinite(seconds):
        raise ValueError(value)
    return seconds


_COLUMNS: Mapping[str, Callable[[Any], Any]] = {
    "time": _seconds,
    "batch_size": _number(1),
    "priority": _number(0),
    "timeout_microseconds": _number(0),
    "shape": str,
    "leaves_after": _seconds,
    "sequence_id": lambda value: value if isinstance(value, int) else str(value),
    "sequence_start": lambda value: boolean(str(value)),
    "sequence_end": lambda value: boolean(str(value)),
    "streams": _seconds,
    "returns": _number(0),
}
