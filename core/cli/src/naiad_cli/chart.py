"""An explanation as a chart: each phase of a request with its beginning, its length and a bar. Pure."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

_BAR = 23
"""Characters that all of the time takes."""

_INDENT = "  "

_PHASES = (
    ("input", "started", "input_done"),
    ("infer", "input_done", "infer_done"),
    ("output", "infer_done", "output_done"),
)


@dataclass(frozen=True, slots=True)
class Phase:
    """One row: what took place, from when to when in microseconds, and what there is to say of it."""

    name: str
    start: float
    end: float
    note: str = ""


def rows(explanation: Mapping[str, Any]) -> list[tuple[str, str, str, str]]:
    """A row for each phase: its name, start and length in microseconds, and a note."""
    return [
        (phase.name, f"{phase.start:.1f}", f"{phase.end - phase.start:.1f}", phase.note)
        for phase in phases(explanation)
    ]


def plain(explanation: Mapping[str, Any]) -> list[tuple[str, str, str, str]]:
    """The same rows for a program that reads them: a phase of a step is named behind the step, as `detect/wait`."""
    way: list[str] = []
    found = []
    for name, start, took, note in rows(explanation):
        told = name.lstrip()
        way[(len(name) - len(told)) // len(_INDENT) :] = [told]
        found.append(("/".join(way), start, took, note))
    return found


def drawn(explanation: Mapping[str, Any]) -> list[str]:
    """The lines of the chart for a terminal, below a line of headings: a bar for each phase."""
    table = [("Phase", "Start µs", "Took µs", "Note"), *rows(explanation)]
    found = list(phases(explanation))
    whole = max((phase.end for phase in found), default=0.0)
    bars = ["", *(_bar(phase, whole) for phase in found)]
    first, second, third = (max(len(row[column]) for row in table) for column in range(3))
    return [
        f"{name:{first}}  {start:>{second}}  {took:>{third}}  {bar:{_BAR}}  {note}".rstrip()
        for (name, start, took, note), bar in zip(table, bars, strict=True)
    ]


def phases(explanation: Mapping[str, Any]) -> Iterator[Phase]:
    """The phases in an explanation, in order; those of steps are indented below the names of their models."""
    yield from _course(explanation, explanation["received"], "")
    answered = explanation["answered"]
    yield Phase("answer", _last(explanation), answered, _responses(explanation))
    if "encoded" in explanation:
        yield Phase("encode", answered, explanation["encoded"])


def _course(told: Mapping[str, Any], start: float, indent: str) -> Iterator[Phase]:
    for end, name, note in _steps_to_the_queue(told):
        if end > start:
            yield Phase(f"{indent}{name}", start, end, note)
        start = end
    for execution in told.get("executions", ()):
        yield Phase(f"{indent}wait", start, execution["started"], _batch(execution))
        for name, first, last in _PHASES:
            if first in execution and last in execution:
                note = f"on {execution['instance']}" if name == "infer" else ""
                yield Phase(f"{indent}{name}", execution[first], execution[last], note)
        start = _end(execution)
    for step in told.get("steps", ()):
        begin = min((end for end, *_ in _steps_to_the_queue(step)), default=start)
        end = max(begin, step.get("answered", 0.0), _last(step))
        yield Phase(f"{indent}{step['model']}", begin, end, f"version {step['version']}")
        yield from _course(step, begin, indent + _INDENT)


def _steps_to_the_queue(told: Mapping[str, Any]) -> list[tuple[float, str, str]]:
    """When each ended of what comes before the wait, in order: the cache may be asked before or behind the checks."""
    taken = [(told["queued"], "take in", "")] if "queued" in told else []
    return sorted([*taken, *([(told["looked_up"], "look up", f"cache {told['cache']}")] if "cache" in told else [])])


def _batch(execution: Mapping[str, Any]) -> str:
    size, requests = execution["batch_size"], execution["requests"]
    items = f"{size} item{'s' if size > 1 else ''}"
    return f"{items} of {requests} request{'s' if requests > 1 else ''}: {execution['closed']}"


def _responses(explanation: Mapping[str, Any]) -> str:
    sent = explanation.get("responses")
    return f"{sent['count']} responses from {sent['first']:.1f} to {sent['last']:.1f}" if sent else ""


def _last(told: Mapping[str, Any]) -> float:
    """When the last thing before the answer ended; the answer itself, for a step."""
    ends = [told.get("looked_up", 0.0), told.get("queued", 0.0)]
    ends += [_end(execution) for execution in told.get("executions", ())]
    ends += [max(step.get("answered", 0.0), _last(step)) for step in told.get("steps", ())]
    return float(max(ends))


def _end(execution: Mapping[str, Any]) -> float:
    return float(
        max(value for key, value in execution.items() if key in ("started", "input_done", "infer_done", "output_done"))
    )


def _bar(phase: Phase, whole: float) -> str:
    """As long as the phase, as far from the left as it began; never less than a thin line."""
    if whole <= 0:
        return ""
    before = min(_BAR - 1, int(phase.start / whole * _BAR))
    length = round((phase.end - phase.start) / whole * _BAR)
    return " " * before + ("█" * min(length, _BAR - before) or "▏")
