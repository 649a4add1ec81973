"""Figures as people read them: durations, rates, counts, bytes; and spark lines. Filters of the pages. Pure."""

from collections.abc import Sequence
from datetime import UTC, datetime

ABSENT = "–"
_SPARK_WIDTH, _SPARK_HEIGHT = 90, 20


def seconds(value: float | None) -> str:
    """A duration: `340 µs`, `1.25 ms`, `2.1 s`."""
    if value is None:
        return ABSENT
    for unit, size in (("s", 1.0), ("ms", 1e-3)):
        if value >= size:
            return f"{_three(value / size)} {unit}"
    return f"{_three(value / 1e-6)} µs"


def number(value: float | None) -> str:
    """A count or a rate: `0`, `3.5`, `1,204`."""
    if value is None:
        return ABSENT
    return f"{value:,.0f}" if abs(value) >= 100 or value == int(value) else _three(value)


def percent(value: float | None) -> str:
    """A share of 1."""
    return ABSENT if value is None else f"{value * 100:.0f} %"


def octets(value: float | None) -> str:
    """Bytes: `1.2 MiB`."""
    if value is None:
        return ABSENT
    for unit in ("B", "KiB", "MiB", "GiB"):
        if value < 1024:
            return f"{_three(value)} {unit}"
        value /= 1024
    return f"{_three(value)} TiB"


def clock(at: float) -> str:
    """A time of the day in UTC, from seconds since the epoch."""
    return datetime.fromtimestamp(at, UTC).strftime("%H:%M:%S")


def spark(values: Sequence[float | None]) -> str:
    """The path of a spark line in a box of 90 by 20 units; "" for fewer than two values."""
    numbers = [value or 0.0 for value in values]
    if len(numbers) < 2:
        return ""
    top = max(*numbers, 1e-9)
    step = _SPARK_WIDTH / (len(numbers) - 1)
    points = (
        f"{index * step:.1f} {_SPARK_HEIGHT - 1 - value / top * (_SPARK_HEIGHT - 2):.1f}"
        for index, value in enumerate(numbers)
    )
    return "M" + "L".join(points)


def _three(value: float) -> str:
    """Three significant digits without an exponent."""
    if value >= 100 or value == 0:
        return f"{value:.0f}"
    return f"{value:.1f}" if value >= 10 else f"{value:.2f}"
