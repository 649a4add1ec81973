"""Small binary tensors over gRPC: what a request costs the server, beside a server of grpc.aio that does nothing."""

import functools
from collections.abc import Sequence

from cases.case import ADD_SUB, Case
from grpc_echo import echoing
from load import with_cost
from report import Goal, Row
from rounds import Run, by_label, side_by_side
from servers import Running

_GOALS = {1: 0.65, 16: 0.65, 64: 0.58}
"""The ratio of inferences/s to reach, by concurrency."""

_OF_ECHO = 0.88
"""The part of a bare echo's inferences/s to reach."""

_ECHOES = {"asyncio": "a bare grpc.aio echo", "uvloop": "that echo on uvloop"}
"""What Naiad is held against: grpc.aio as it comes, which has the goal, and with the event loop that Naiad has."""


def measure(run: Run) -> Sequence[Row]:
    echoes: list[dict[str, float]] = []

    def once(running: Running) -> dict[str, float]:
        numbers = {}
        for model, message in ADD_SUB.items():
            for concurrency in _GOALS:
                measure = functools.partial(
                    run.generator, running.ports.grpc, model, concurrency, ("--max-threads", "8"), protocol="grpc"
                )
                load, cost = with_cost(running, model, measure)
                label = f"concurrency {concurrency}{message}"
                numbers[f"{label}: inferences/s"] = load.per_second
                numbers[f"{label}: p99, ms"] = load.p99_milliseconds
                numbers[f"{label}: server's processor time, µs each"] = cost
        if running.name == "Naiad":
            echoes.append(_echo(run, running))
        return numbers

    seen = side_by_side(run, once)
    goals = {
        f"concurrency {concurrency}{message}: inferences/s": Goal(least=least, of_ratio=True)
        for message in ADD_SUB.values()
        for concurrency, least in _GOALS.items()
    }
    echo = by_label(echoes)
    beside_echo = [
        Row(
            f"concurrency {concurrency}{message}, beside {named}: inferences/s",
            seen.naiad[f"concurrency {concurrency}{message}: inferences/s"],
            echo[f"{loop} {concurrency}"],
            Goal(least=_OF_ECHO, of_ratio=True) if loop == "asyncio" else None,
        )
        for loop, named in _ECHOES.items()
        for message in ADD_SUB.values()
        for concurrency in _GOALS
    ]
    return [*seen.rows(goals), *beside_echo]


def _echo(run: Run, running: Running) -> dict[str, float]:
    numbers = {}
    for loop in _ECHOES:
        with echoing(running, "add_sub", loop) as echo:
            for concurrency in _GOALS:
                load = run.generator(echo.ports.grpc, "add_sub", concurrency, ("--max-threads", "8"), protocol="grpc")
                numbers[f"{loop} {concurrency}"] = load.per_second
    return numbers


CASE = Case(
    "grpc",
    "gRPC, small binary tensors",
    "The same two models and load over gRPC. The last rows hold Naiad against a server of grpc.aio that answers every "
    "request with the same bytes: on the event loop of asyncio, as grpc.aio comes, and on uvloop, which Naiad has.",
    measure,
)
