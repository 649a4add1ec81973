"""What a line of the access log for each request costs."""

import json
import urllib.request
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from cases.case import Case
from cases.turns import CONNECTIONS, measure_by_turns
from report import Row
from rounds import Run
from servers import Running

_LEAST = 0.97


def measure(run: Run) -> Sequence[Row]:
    return measure_by_turns(run, (), _logged, _LEAST)


@contextmanager
def _logged(running: Running) -> Iterator[None]:
    """A line for each request on the connections that are opened while the block runs."""
    _set_verbosity(running, 2)
    try:
        yield
    finally:
        _set_verbosity(running, 0)


def _set_verbosity(running: Running, level: int) -> None:
    body = json.dumps({"log_verbose_level": level}).encode()
    with urllib.request.urlopen(f"http://127.0.0.1:{running.port}/v2/logging", body, timeout=10):
        pass


CASE = Case(
    "access-log",
    "The access log",
    f"The add/sub model over HTTP, JSON tensors from wrk with {CONNECTIONS} connections, in slices of three seconds on "
    "one server, whose log is a file: by turns there is a line of text for each request (`--log-verbose=2`, as with "
    "`--access-log=text`), and none.",
    measure,
    reference="without lines",
)
