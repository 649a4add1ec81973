"""Bars of the model page: what the server draws as SVG, because its pages have no inline styles. Pure."""

from typing import Any

_WIDTH = 260.0


def bars(details: dict[str, Any]) -> dict[str, list[dict[str, Any]]]:
    """The widths of the bars of a version's phases, batch sizes and reasons, in units of 260."""
    phases = [each for each in details.get("phases", ()) if each["name"] != "request"]
    whole = sum(each["mean"] or 0.0 for each in phases) or 1.0
    start, stack = 0.0, []
    for each in phases:
        width = (each["mean"] or 0.0) / whole * _WIDTH
        stack.append({"name": each["name"], "x": round(start, 1), "width": round(width, 1), "mean": each["mean"]})
        start += width
    sizes = details.get("batches", [])
    reasons = [{"reason": reason, "count": count} for reason, count in details.get("reasons", {}).items()]
    return {"phases": stack, "batches": _scaled(sizes), "reasons": _scaled(reasons)}


def _scaled(entries: list[dict[str, Any]]) -> list[dict[str, Any]]:
    most = max((each["count"] for each in entries), default=0) or 1
    return [{**each, "width": round(each["count"] / most * _WIDTH, 1)} for each in entries]
