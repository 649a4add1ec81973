"""Timeline chart of one request (`naiad infer --explain`): a row for each phase with start, duration and a bar."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from naiad_kit.timeline import EXECUTION_PHASES

_BAR = 23
"""Width of the chart in characters; it stands for the whole duration of the request."""

_INDENT = "  "


@dataclass(frozen=True, slots=True)
class Phase:
    """One row of the chart: a phase, its start and end in microseconds, and a note."""

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
    """The rows of `rows` without indentation, for programs: the phase `wait` of the step `detect` is `detect/wait`."""
    path: list[str] = []
    plain_rows = []
    for name, start, duration, note in rows(explanation):
        phase = name.lstrip()
        path[(len(name) - len(phase)) // len(_INDENT) :] = [phase]
        plain_rows.append(("/".join(path), start, duration, note))
    return plain_rows


def drawn(explanation: Mapping[str, Any]) -> list[str]:
    """The lines of the chart for a terminal, below a line of headings: a bar for each phase."""
    table = [("Phase", "Start µs", "Took µs", "Note"), *rows(explanation)]
    every_phase = list(phases(explanation))
    whole = max((phase.end for phase in every_phase), default=0.0)
    bars = ["", *(_bar(phase, whole) for phase in every_phase)]
    first, second, third = (max(len(row[column]) for row in table) for column in range(3))
    return [
        f"{name:{first}}  {start:>{second}}  {took:>{third}}  {bar:{_BAR}}  {note}".rstrip()
        for (name, start, took, note), bar in zip(table, bars, strict=True)
    ]


def phases(explanation: Mapping[str, Any]) -> Iterator[Phase]:
    """The phases in an explanation, in order; those of steps are indented below the names of their models."""
    yield from _execution_phases(explanation, explanation["received"], "")
    answered = explanation["answered"]
    yield Phase("answer", _last(explanation), answered, _responses(explanation))
    if "encoded" in explanation:
        yield Phase("encode", answered, explanation["encoded"])


def _execution_phases(timeline: Mapping[str, Any], start: float, indent: str) -> Iterator[Phase]:
    """The phases of a request, or of one step, up to its last execution; those of its own steps follow, indented."""
    for end, name, note in _phases_before_the_queue(timeline):
        if end > start:
            yield Phase(f"{indent}{name}", start, end, note)
        start = end
    for execution in timeline.get("executions", ()):
        yield Phase(f"{indent}wait", start, execution["started"], _batch(execution))
        for name, first, last in EXECUTION_PHASES:
            if first in execution and last in execution:
                note = f"on {execution['instance']}" if name == "infer" else ""
                yield Phase(f"{indent}{name}", execution[first], execution[last], note)
        start = _end(execution)
    for step in timeline.get("steps", ()):
        begin = min((end for end, *_ in _phases_before_the_queue(step)), default=start)
        end = max(begin, step.get("answered", 0.0), _last(step))
        yield Phase(f"{indent}{step['model']}", begin, end, f"version {step['version']}")
        yield from _execution_phases(step, begin, indent + _INDENT)


def _phases_before_the_queue(timeline: Mapping[str, Any]) -> list[tuple[float, str, str]]:
    """End, name and note of the phases before the queue, by time; the cache lookup may precede or follow the checks."""
    taken = [(timeline["queued"], "take in", "")] if "queued" in timeline else []
    return sorted(
        [*taken, *([(timeline["looked_up"], "look up", f"cache {timeline['cache']}")] if "cache" in timeline else [])]
    )


def _batch(execution: Mapping[str, Any]) -> str:
    size, requests = execution["batch_size"], execution["requests"]
    items = f"{size} item{'s' if size > 1 else ''}"
    return f"{items} of {requests} request{'s' if requests > 1 else ''}: {execution['closed']}"


def _responses(explanation: Mapping[str, Any]) -> str:
    sent = explanation.get("responses")
    return f"{sent['count']} responses from {sent['first']:.1f} to {sent['last']:.1f}" if sent else ""


def _last(timeline: Mapping[str, Any]) -> float:
    """The end of the last phase before the response; for a step, the end of its response."""
    ends = [timeline.get("looked_up", 0.0), timeline.get("queued", 0.0)]
    ends += [_end(execution) for execution in timeline.get("executions", ())]
    ends += [max(step.get("answered", 0.0), _last(step)) for step in timeline.get("steps", ())]
    return float(max(ends))


def _end(execution: Mapping[str, Any]) -> float:
    return float(
        max(value for key, value in execution.items() if key in ("started", "input_done", "infer_done", "output_done"))
    )


def _bar(phase: Phase, whole: float) -> str:
    """The bar of a phase, in proportion to the whole duration; at least a thin line."""
    if whole <= 0:
        return ""
    before = min(_BAR - 1, int(phase.start / whole * _BAR))
    length = round((phase.end - phase.start) / whole * _BAR)
    return " " * before + ("█" * min(length, _BAR - before) or "▏")
