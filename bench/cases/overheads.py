"""What an execution costs above the framework's own call, framework by framework."""

import json
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from cases.case import Case
from report import Goal, Row
from rounds import Numbers, Run, by_label

_SCRIPT = Path(__file__).resolve().parent.parent / "overhead.py"
_GOALS = {"torch": 60.0, "onnx": 60.0, "openvino": 60.0, "tensorflow": 100.0}


def measure(run: Run) -> Sequence[Row]:
    seen: dict[str, list[Numbers]] = {name: [] for name in _GOALS}
    for _ in range(run.rounds):
        for name, rounds in seen.items():
            requests = 1_000 if run.quick else 5_000
            numbers = _overhead(name, requests)
            numbers["on the event loop"] = _overhead(name, requests, "--on-loop")["server"]
            rounds.append(numbers)
    rows = []
    for name, goal in _GOALS.items():
        times = by_label(seen[name])
        rows.append(Row(f"{name}: a request in the server, µs", times["server"], times["own"], Goal(most=goal)))
        loop = f"{name}: a request in the server, on the event loop, µs"
        rows.append(Row(loop, times["on the event loop"], times["own"], Goal(most=goal)))
        rows.append(Row(f"{name}: the instance alone, µs", times["instance"], times["own"]))
    return rows


def _overhead(framework: str, requests: int, *options: str) -> Numbers:
    command = [sys.executable, str(_SCRIPT), framework, "--requests", str(requests), *options]
    message = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout
    numbers: Numbers = json.loads(message.splitlines()[-1])
    return numbers


CASE = Case(
    "overhead",
    "What an execution costs above the framework's own call",
    "A linear layer of 16 by 16, batch 1, `max_batch_size: 64` without a scheduler, in one process without frontends "
    "(`bench/overhead.py`): a request from `Server.submit` to its answer, with the model on a thread of its own (two "
    "wake-ups of a processor, 60 to 150 µs on a virtual machine) and on the event loop (none), and `execute` of the "
    "plugin's instance called by itself. All are given as what they take above the framework's own call, which stands "
    "in the other column; they take turns, and medians are compared.",
    measure,
    "the framework's own call",
)
