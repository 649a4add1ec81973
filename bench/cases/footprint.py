"""What the server costs before it does anything: memory without a framework, and the time until it is ready."""

from collections.abc import Sequence

from cases.case import Case
from report import Goal, Row
from rounds import Run, side_by_side
from servers import Running

_READY = "start to ready with the Python models, s"
_MEMORY = "resident memory when ready, MB"
_LOADED = "resident memory after load at concurrency 64, MB"


def measure(run: Run) -> Sequence[Row]:
    def once(running: Running) -> dict[str, float]:
        numbers = {_READY: running.start_seconds, _MEMORY: running.resident_megabytes()}
        if run.perf_analyzer is not None:
            run.perf_analyzer(running.port, "add_sub", 64)
            numbers[_LOADED] = running.resident_megabytes()
        return numbers

    return side_by_side(run, once).rows({_READY: Goal(most=1.0), _MEMORY: Goal(most=90)})


CASE = Case(
    "footprint",
    "Memory and start",
    "The server process and its children with two Python models (numpy, no framework); from the start of the process "
    "to the first 200 of `/v2/health/ready`.",
    measure,
)
