"""The scheduler by itself: a long queue must cost no more a decision than a short one."""

import json
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from cases.case import Case
from report import Goal, Row
from rounds import Run

_SCRIPT = Path(__file__).resolve().parent.parent / "decisions.py"
_KINDS = {
    "plain": "`dynamic_batching {}`",
    "delay": "preferred sizes 4 and 8, a queue delay",
    "policies": "three priority levels, timeouts that delay",
}


def measure(run: Run) -> Sequence[Row]:
    seconds = 0.1 if run.quick else 2.0
    rows = []
    for kind, message in _KINDS.items():
        long, short = [], []
        for _ in range(run.rounds):
            short.append(_decisions(kind, 10, seconds))
            long.append(_decisions(kind, 100_000, seconds))
        goal = Goal(least=0.8, of_ratio=True)
        rows.append(Row(f"{message}: decisions/s", tuple(long), tuple(short), goal))
    return rows


def _decisions(kind: str, queue: int, seconds: float) -> float:
    command = [sys.executable, str(_SCRIPT), kind, "--queue", str(queue), "--seconds", str(seconds)]
    ended = subprocess.run(command, check=True, capture_output=True, text=True)
    return float(json.loads(ended.stdout)["decisions_per_second"])


CASE = Case(
    "scheduler",
    "The scheduler alone",
    "One decision is: eight requests arrive, `decide` sends eight to the idle instance, the batch is settled. The "
    "first column has 100,000 requests waiting, the second 10.",
    measure,
    "queue of 10",
)
