"""JSON tensors over HTTP: parsing and writing numbers."""

import functools
from collections.abc import Sequence
from pathlib import Path

from cases.case import Case
from load import with_cost, wrk
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
        load, cost = with_cost(running, "add_sub", functools.partial(wrk, url, _SCRIPT, _CONNECTIONS, seconds))
        return {
            "requests/s": load.per_second,
            "p99, ms": load.p99_milliseconds,
            "server's processor time, µs each": cost,
        }

    return side_by_side(run, once).rows({"requests/s": Goal(least=1.4, of_ratio=True)})


CASE = Case(
    "json",
    "HTTP, JSON bodies",
    f"The same model; wrk with one thread and {_CONNECTIONS} connections posts both tensors as JSON numbers.",
    measure,
)
