"""A server under explicit model control, and short ways to ask it."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from naiad import Server
from naiad.reports import IndexEntry
from naiad_testing.in_loop import request, running


def explicit(root: Path | Sequence[Path], *plugins: object, **options: Any) -> Any:
    return running(root, *plugins, model_control_mode="explicit", **options)


async def value(server: Server, name: str = "m") -> float:
    response = await server.infer(request(name, 1))
    return float(response.outputs["OUTPUT"].array[0])


def states(server: Server) -> list[tuple[int, str]]:
    return [(entry.version, entry.state) for entry in server.index()]


UNLOADED = [IndexEntry("m", 1, "UNAVAILABLE", "unloaded")]
