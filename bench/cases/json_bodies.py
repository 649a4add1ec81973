"""JSON tensors over HTTP: parsing and writing numbers."""

import functools
from collections.abc import Sequence
from pathlib import Path

from cases.case import ADD_SUB, Case
from load import with_cost, wrk
from report import Goal, Row
from rounds import Run, side_by_side
from servers import Running

_SCRIPT = Path(__file__).resolve().parent.parent / "json_bodies.lua"
_CONNECTIONS = 32


def measure(run: Run) -> Sequence[Row]:
    seconds = 2 if run.quick else 8

    def once(running: Running) -> dict[str, float]:
        numbers = {}
        for model, message in ADD_SUB.items():
            url = f"http://127.0.0.1:{running.port}/v2/models/{model}/infer"
            wrk(url, _SCRIPT, _CONNECTIONS, 1)  # connections, branch predictors and freshly loaded code
            load, cost = with_cost(running, model, functools.partial(wrk, url, _SCRIPT, _CONNECTIONS, seconds))
            numbers[f"requests/s{message}"] = load.per_second
            numbers[f"p99, ms{message}"] = load.p99_milliseconds
            numbers[f"server's processor time, µs each{message}"] = cost
        return numbers

    goals = {f"requests/s{message}": Goal(least=1.4, of_ratio=True) for message in ADD_SUB.values()}
    return side_by_side(run, once).rows(goals)


CASE = Case(
    "json",
    "HTTP, JSON bodies",
    f"The same two models; wrk with one thread and {_CONNECTIONS} connections posts both tensors as JSON numbers.",
    measure,
)
