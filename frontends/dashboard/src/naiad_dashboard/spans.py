"""Spans of a timeline: what the document of a request says, as bars with a beginning and an end in seconds. Pure."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from naiad_kit.timeline import EXECUTION_PHASES


@dataclass(frozen=True, slots=True)
class Span:
    """One bar: `kind` is queue, input, infer, output, answer, cache or step; times are seconds since the request."""

    label: str
    kind: str
    start: float
    end: float


def spans(timeline: Mapping[str, Any], total: float) -> list[Span]:
    """The bars of a request that took `total` seconds, those of its steps after its own."""
    return list(_spans(timeline, "", total))


def _spans(course: Mapping[str, Any], prefix: str, end: float) -> Iterator[Span]:
    waited = _seconds(course, "queued")
    if not any(course.get(key) for key in ("cache", "executions", "steps")):
        yield Span(f"{prefix}queue", "queue", waited, end)  # it failed before an execution
    if "cache" in course:
        yield Span(f"{prefix}cache {course['cache']}", "cache", waited, _seconds(course, "looked_up"))
    for execution in course.get("executions", ()):
        started = _seconds(execution, "started")
        yield Span(f"{prefix}queue", "queue", waited, started)
        for kind, begin, done in EXECUTION_PHASES:
            if done in execution:
                yield Span(f"{prefix}{kind}", kind, _seconds(execution, begin), _seconds(execution, done))
                waited = _seconds(execution, done)
    if not prefix and course.get("executions") and waited < end:
        yield Span("answer", "answer", waited, end)
    for step in course.get("steps", ()):
        ends = [_seconds(each, "output_done") for each in step.get("executions", ()) if "output_done" in each]
        answered = _seconds(step, "answered") if "answered" in step else max(ends, default=end)
        yield Span(f"{prefix}{step['model']}", "step", _seconds(step, "queued"), answered)
        yield from _spans(step, f"{prefix}· ", answered)


def _seconds(entry: Mapping[str, Any], key: str) -> float:
    return float(entry.get(key, 0.0)) / 1e6
