"""The timeline of a request: the JSON document made of its events. Pure."""

from collections.abc import Mapping, Sequence
from typing import Any

from naiad.types import JoinedBatch
from naiad_kit.explanation import Explanation

EXECUTION_PHASES = (
    ("input", "started", "input_done"),
    ("infer", "input_done", "infer_done"),
    ("output", "infer_done", "output_done"),
)
"""The phases of an execution in the document: the name of each, and the keys of its begin and end."""

_ENDS = {"COMPUTE_INPUT_END": "input_done", "COMPUTE_OUTPUT_START": "infer_done", "COMPUTE_END": "output_done"}
_CACHE = {"CACHE_HIT_LOOKUP_END": "hit", "CACHE_MISS_LOOKUP_END": "miss"}


def timeline(explanation: Explanation, received_ns: int, answered_ns: int) -> dict[str, Any]:
    """The explanation as JSON has it; times are microseconds since the request was received."""
    entry = {"model": explanation.model, "version": explanation.version, "received": 0.0}
    return entry | _course(explanation, received_ns) | {"answered": _since(received_ns, answered_ns)}


def _course(explanation: Explanation, zero_ns: int) -> dict[str, Any]:
    """What happened between the arrival of a request and its answer."""
    events = explanation.events
    course: dict[str, Any] = {}
    for event, ns in events:
        if event == "QUEUE_START":
            course.setdefault("queued", _since(zero_ns, ns))
        elif event in _CACHE:
            course["cache"], course["looked_up"] = _CACHE[str(event)], _since(zero_ns, ns)
    executions = _executions(events, zero_ns)
    if executions:
        course["executions"] = executions
    responses = [_since(zero_ns, ns) for event, ns in events if event == "INFER_RESPONSE_COMPLETE"]
    if len(responses) > 1:
        course["responses"] = {"count": len(responses), "first": responses[0], "last": responses[-1]}
    if explanation.children:
        course["steps"] = [_step(child, zero_ns) for child in list(explanation.children)]
    return course


def _step(child: Explanation, zero_ns: int) -> dict[str, Any]:
    entry = {"model": child.model, "version": child.version} | _course(child, zero_ns)
    ended = [_since(zero_ns, ns) for event, ns in child.events if event == "REQUEST_END"]
    return entry | ({"answered": ended[-1]} if ended else {})


def _executions(events: Sequence[tuple[str | JoinedBatch, int]], zero_ns: int) -> list[Mapping[str, Any]]:
    """Each execution with its batch; a request of an iterative sequence has several."""
    executions: list[dict[str, Any]] = []
    for event, ns in events:
        if isinstance(event, JoinedBatch):
            executions.append(
                {
                    "instance": event.instance,
                    "batch_size": event.batch_size,
                    "requests": event.requests,
                    "closed": event.reason,
                    "started": _since(zero_ns, ns),
                }
            )
        elif event in _ENDS and executions:
            executions[-1][_ENDS[event]] = _since(zero_ns, ns)
    return list(executions)


def _since(zero_ns: int, ns: int) -> float:
    """Microseconds between two moments, to a tenth."""
    return round((ns - zero_ns) / 1000, 1)
