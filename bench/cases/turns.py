"""Load in slices on one server, in which something is on by turns: what it costs the requests of all."""

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from pathlib import Path

from load import Load, PerfAnalyzer, with_cost, wrk
from report import Goal, Row
from rounds import MODELS, Run
from servers import Naiad, Running

MODEL = "add_sub"
CONNECTIONS = 32
_SCRIPT = Path(__file__).resolve().parent.parent / "json_bodies.lua"
_WINDOW = 1000

Generator = Callable[[Running, int], Load]
"""Loads `MODEL` of a server for so many seconds."""


def measure_by_turns(
    run: Run,
    options: Sequence[str],
    switched_on: Callable[[Running], AbstractContextManager[None]],
    least: float,
    generator: Generator | None = None,
    label: str = "",
) -> Sequence[Row]:
    """Rates and processor times of slices with and without, labelled; `least` is the goal for the ratio of the rates.

    The load is JSON over HTTP from wrk unless there is a `generator`.
    """
    generator = generator or _json_from_wrk
    pairs, seconds = (2, 1) if run.quick else (10, 3)
    rates: dict[bool, list[float]] = {True: [], False: []}
    costs: dict[bool, list[float]] = {True: [], False: []}
    for _ in range(run.rounds):
        with Naiad().serve(MODELS, *options) as running:
            generator(running, 2)  # connections, branch predictors and freshly loaded code
            for number in range(2 * pairs):
                is_on = number % 4 in (0, 3)  # a machine that slows down on the way favours neither
                if is_on:
                    with switched_on(running):
                        rate, cost = _load(running, generator, seconds)
                else:
                    rate, cost = _load(running, generator, seconds)
                rates[is_on].append(rate)
                costs[is_on].append(cost)
    return [
        Row(f"{label}requests/s", tuple(rates[True]), tuple(rates[False]), Goal(least=least, of_ratio=True)),
        Row(f"{label}server's processor time, µs each", tuple(costs[True]), tuple(costs[False])),
    ]


def grpc_from_perf_analyzer(run: Run, concurrency: int) -> Generator | None:
    """Calls over gRPC, so many at once, None without perf_analyzer."""
    program = run.perf_analyzer
    if not isinstance(program, PerfAnalyzer):
        return None
    slices = replace(program, window=_WINDOW, tolerance=900)  # ends after the first three windows

    def generate(running: Running, seconds: int) -> Load:
        return slices(running.ports.grpc, MODEL, concurrency, ("--max-threads", "8"), "grpc")

    return generate


def _json_from_wrk(running: Running, seconds: int) -> Load:
    return wrk(f"http://127.0.0.1:{running.port}/v2/models/{MODEL}/infer", _SCRIPT, CONNECTIONS, seconds)


def _load(running: Running, generator: Generator, seconds: int) -> tuple[float, float]:
    load, cost = with_cost(running, MODEL, lambda: generator(running, seconds))
    return load.per_second, cost
