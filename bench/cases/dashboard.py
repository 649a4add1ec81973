"""What a viewer of the dashboard costs the requests of all others."""

import http.client
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from cases.case import Case
from cases.turns import CONNECTIONS, MODEL, measure_by_turns
from report import Row
from rounds import Run
from servers import free_port

_VIEW = f"/events/models/{MODEL}/versions/1"
_LEAST = 0.99


def measure(run: Run) -> Sequence[Row]:
    port = free_port()
    return measure_by_turns(run, (f"--dashboard-port={port}",), lambda _: _viewer(port), _LEAST)


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
    f"The add/sub model over HTTP, JSON tensors from wrk with {CONNECTIONS} connections, in slices of three seconds "
    "on one server: by turns the page of the model is open, and no page is. An open page has counters read once a "
    "second, and up to 100 requests a second followed.",
    measure,
    reference="without a viewer",
)
