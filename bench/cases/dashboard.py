"""What a viewer of the dashboard costs the requests of all others."""

import http.client
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from cases.case import Case
from load import with_cost, wrk
from report import Goal, Row
from rounds import MODELS, Run
from servers import Naiad, Running, free_port

_SCRIPT = Path(__file__).resolve().parent.parent / "json_bodies.lua"
_CONNECTIONS = 32
_MODEL = "add_sub"
_VIEW = f"/events/models/{_MODEL}/versions/1"
_LEAST = 0.99


def measure(run: Run) -> Sequence[Row]:
    pairs, seconds = (2, 1) if run.quick else (10, 3)
    rates: dict[bool, list[float]] = {True: [], False: []}
    costs: dict[bool, list[float]] = {True: [], False: []}
    for _ in range(run.rounds):
        port = free_port()
        with Naiad().serve(MODELS, f"--dashboard-port={port}") as running:
            _load(running, 2)  # connections, branch predictors and freshly loaded code
            for number in range(2 * pairs):
                is_viewed = number % 4 in (0, 3)  # a machine that slows down on the way favours neither
                if is_viewed:
                    with _viewer(port):
                        rate, cost = _load(running, seconds)
                else:
                    rate, cost = _load(running, seconds)
                rates[is_viewed].append(rate)
                costs[is_viewed].append(cost)
    goal = Goal(least=_LEAST, of_ratio=True)
    return [
        Row("requests/s", tuple(rates[True]), tuple(rates[False]), goal),
        Row("server's processor time, µs each", tuple(costs[True]), tuple(costs[False])),
    ]


def _load(running: Running, seconds: int) -> tuple[float, float]:
    url = f"http://127.0.0.1:{running.port}/v2/models/{_MODEL}/infer"
    load, cost = with_cost(running, _MODEL, lambda: wrk(url, _SCRIPT, _CONNECTIONS, seconds))
    return load.per_second, cost


@contextmanager
def _viewer(port: int) -> Iterator[None]:
    """The page of the model, open as in a browser: its stream is read while the block runs."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
    connection.request("GET", _VIEW)
    answer = connection.getresponse()
    if answer.status != 200:
        raise RuntimeError(f"the dashboard answers {answer.status} to {_VIEW}")
    over = threading.Event()

    def read() -> None:
        while not over.is_set() and answer.readline():
            pass

    reader = threading.Thread(target=read)
    reader.start()
    try:
        yield
    finally:
        over.set()
        reader.join()  # the next event comes within a second
        connection.close()


CASE = Case(
    "dashboard",
    "A viewer of the dashboard",
    f"The add/sub model over HTTP, JSON tensors from wrk with {_CONNECTIONS} connections, in slices of three seconds "
    "on one server: by turns the page of the model is open, and no page is. An open page has counters read once a "
    "second, and up to 100 requests a second followed.",
    measure,
    reference="without a viewer",
)
