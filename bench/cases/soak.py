"""Minutes of mixed traffic with clients that leave: what is left over of them."""

import json
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from statistics import linear_regression

from cases.case import Case
from load import LoadError
from report import Goal, Row
from rounds import MODELS, Run
from servers import Naiad, Running

_SCRIPT = Path(__file__).resolve().parent.parent / "mixed_traffic.py"
_WARM_UP = 120.0
_SECONDS = 300.0
_SETTLED_WITHIN = 15.0


def measure(run: Run) -> Sequence[Row]:
    warm_up, seconds = (3.0, 6.0) if run.quick else (_WARM_UP, _SECONDS)
    with Naiad().serve(MODELS) as running:
        _traffic(running, warm_up)
        before = settled(running)
        moments, sizes = _traffic(running, seconds)
        after = settled(running)
    slope = linear_regression(moments, sizes).slope * 60
    return [
        Row("memory, MB a minute", (slope,), (), Goal(most=1)),
        Row("memory at the end of the warm-up and of the traffic, MB", (before[0],), (after[0],)),
        Row("threads left over", (after[1] - before[1],), (), Goal(most=0)),
        Row("descriptors left over", (after[2] - before[2],), (), Goal(most=0)),
        Row("requests that the metrics say are still in flight", (after[3],), (), Goal(most=0)),
    ]


def _traffic(running: Running, seconds: float) -> tuple[list[float], list[float]]:
    """The moments (s) at which the server's memory (MB) was looked at while the traffic ran, and what it was."""
    command = [sys.executable, str(_SCRIPT), str(running.ports.http), str(running.ports.grpc), str(seconds)]
    moments, sizes = [], []
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        while process.poll() is None:
            time.sleep(1)
            moments.append(time.monotonic())
            sizes.append(running.resident_megabytes())
        message = process.stdout.read() if process.stdout is not None else ""
    if process.returncode:
        raise LoadError(f"the traffic ended with status {process.returncode}")
    print(dict(sorted(json.loads(message).items())), file=sys.stderr)
    return moments, sizes


def settled(running: Running) -> tuple[float, int, int, float]:
    """Memory (MB), threads, descriptors and requests in flight once nothing changes any more."""
    deadline = time.monotonic() + _SETTLED_WITHIN
    seen = (0, 0, 0.0)
    while time.monotonic() < deadline:
        time.sleep(1)
        now = (running.threads(), running.descriptors(), _in_flight(running))
        if now == seen and not now[2]:
            break
        seen = now
    return running.resident_megabytes(), *seen


def _in_flight(running: Running) -> float:
    lines = running.metrics_text().splitlines()
    return sum(float(line.rpartition(" ")[2]) for line in lines if line.startswith("naiad_inflight_requests{"))


CASE = Case(
    "soak",
    "Five minutes of clients that leave",
    "32 clients, each request on a connection of its own: HTTP with binary, JSON, large and broken bodies, event "
    "streams, gRPC calls and streams; a third leaves within its request or within the answer. After two minutes of "
    "warm-up, five minutes are measured: the slope of the resident memory, and what is left when all clients are gone.",
    measure,
    reference="at the end",
)
