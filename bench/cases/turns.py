"""Load in slices on one server, in which something is on by turns: what it costs the requests of all."""

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from pathlib import Path

from load import with_cost, wrk
from report import Goal, Row
from rounds import MODELS, Run
from servers import Naiad, Running

MODEL = "add_sub"
CONNECTIONS = 32
_SCRIPT = Path(__file__).resolve().parent.parent / "json_bodies.lua"


def measure_by_turns(
    run: Run, options: Sequence[str], switched_on: Callable[[Running], AbstractContextManager[None]], least: float
) -> Sequence[Row]:
    """Rates and processor times of slices with and without; `least` is the goal for the ratio of the rates."""
    pairs, seconds = (2, 1) if run.quick else (10, 3)
    rates: dict[bool, list[float]] = {True: [], False: []}
    costs: dict[bool, list[float]] = {True: [], False: []}
    for _ in range(run.rounds):
        with Naiad().serve(MODELS, *options) as running:
            _load(running, 2)  # connections, branch predictors and freshly loaded code
            for number in range(2 * pairs):
                is_on = number % 4 in (0, 3)  # a machine that slows down on the way favours neither
                if is_on:
                    with switched_on(running):
                        rate, cost = _load(running, seconds)
                else:
                    rate, cost = _load(running, seconds)
                rates[is_on].append(rate)
                costs[is_on].append(cost)
    return [
        Row("requests/s", tuple(rates[True]), tuple(rates[False]), Goal(least=least, of_ratio=True)),
        Row("server's processor time, µs each", tuple(costs[True]), tuple(costs[False])),
    ]


def _load(running: Running, seconds: int) -> tuple[float, float]:
    url = f"http://127.0.0.1:{running.port}/v2/models/{MODEL}/infer"
    load, cost = with_cost(running, MODEL, lambda: wrk(url, _SCRIPT, CONNECTIONS, seconds))
    return load.per_second, cost
