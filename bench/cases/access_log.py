"""What a line of the access log for each request costs."""

import json
import urllib.request
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from cases.case import Case
from cases.turns import CONNECTIONS, grpc_from_perf_analyzer, measure_by_turns
from report import Row
from rounds import Run
from servers import Running

_LEAST = 0.97
_FORMS = {"text": (), "JSON": ("--log-format=json",)}
_CALLS = 16


def measure(run: Run) -> Sequence[Row]:
    rows: list[Row] = []
    grpc = grpc_from_perf_analyzer(run, _CALLS)
    for form, options in _FORMS.items():
        rows += measure_by_turns(run, options, _logged, _LEAST, label=f"HTTP, {form}: ")
        if grpc is not None:
            rows += measure_by_turns(run, options, _logged, _LEAST, grpc, f"gRPC, {form}: ")
    return rows


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
    f"The add/sub model over HTTP, JSON tensors from wrk with {CONNECTIONS} connections, and over gRPC, {_CALLS} calls "
    "at once from perf_analyzer, in slices of three seconds on one server, whose log is a file: by turns there is a "
    "line for each request (`--log-verbose=2`, as with `--access-log=text` or `json`), and none.",
    measure,
    reference="without lines",
)
