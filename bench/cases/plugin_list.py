"""How long `naiad plugins` takes with every framework installed: nothing of them may be imported for it."""

import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from cases.case import Case
from report import Goal, Row
from rounds import Run


def measure(run: Run) -> Sequence[Row]:
    _seconds()  # the files are in memory from here on
    return [Row("naiad plugins, s", tuple(_seconds() for _ in range(3 * run.rounds)), (), Goal(most=0.5))]


def _seconds() -> float:
    command = [str(Path(sys.executable).with_name("naiad")), "plugins"]
    started = time.perf_counter()
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    return time.perf_counter() - started


CASE = Case(
    "plugins",
    "The list of plugins",
    "`naiad plugins` from the start of the process to its end, with the plugins and frameworks of this environment.",
    measure,
    "–",
)
