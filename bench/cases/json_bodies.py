"""JSON tensors over HTTP: parsing and writing numbers."""

from collections.abc import Sequence
from pathlib import Path

from cases.case import Case
from load import wrk
from report import Goal, Row
from rounds import Run, side_by_side
from servers import Running

_SCRIPT = Path(__file__).resolve().parent.parent / "json_bodies.lua"
_CONNECTIONS = 32


def measure(run: Run) -> Sequence[Row]:
    seconds = 2 if run.quick else 8

    def once(running: Running) -> dict[str, float]:
        url = f"http://127.0.0.1:{running.port}/v2/models/add_sub/infer"
        wrk(url, _SCRIPT, _CONNECTIONS, 1)  # connections, branch predictors and freshly loaded code
        load = wrk(url, _SCRIPT, _CONNECTIONS, seconds)
        return {"requests/s": load.per_second, "p99, ms": load.p99_milliseconds}

    seen = side_by_side(run, once)
    goals = {"requests/s": Goal(least=1.4, of_ratio=True), "p99, ms": None}
    return [Row(label, seen.naiad[label], seen.peer.get(label, ()), goal) for label, goal in goals.items()]


CASE = Case(
    "json",
    "HTTP, JSON bodies",
    f"The same model; wrk with one thread and {_CONNECTIONS} connections posts both tensors as JSON numbers.",
    measure,
)
