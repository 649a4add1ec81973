"""Runs one case: a fresh server, a well-behaved client beside the attack, and the figures that every case has."""

import contextlib
import json
import subprocess
import sys
import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench.torture.case import Case, Figure
from bench.torture.server import Target, serve
from bench.torture.wire import ask, infer_path, json_infer, tensor

_PROBER = Path(__file__).with_name("prober.py")
_STOP_WITHIN = 45.0


@dataclass(frozen=True, slots=True)
class Result:
    """The figures of a case, and the error that kept it from running to its end, if any."""

    figures: Sequence[Figure]
    error: str = ""

    @property
    def holds(self) -> bool:
        return not self.error and all(figure.holds for figure in self.figures)


def run_case(naiad: Path, case: Case) -> Result:
    """Run a case against a server of its own."""
    figures: list[Figure] = []
    try:
        with serve(naiad, case.setup) as target:
            figures.extend(_attack(target, case))
    except (RuntimeError, OSError, EOFError, ValueError) as error:
        return Result(figures, f"{type(error).__name__}: {str(error)[-600:]}")
    return Result(figures)


def _attack(target: Target, case: Case) -> list[Figure]:
    if case.probed:
        _warm_up(target)
    target.forget_peak()
    before, log_before, bounds = target.megabytes(), target.log_bytes(), case.bounds
    error = ""
    with _probed(target, case.probed) as probes, _killed_late(target, case.seconds) as overtime:
        try:
            own = list(case.attack(target))
        except (OSError, EOFError, ValueError) as raised:
            own, error = [], f"{type(raised).__name__}: {raised}"
        kept = target.settled_megabytes(before + bounds.kept) - before
    survived = target.alive()
    figures = [
        *own,
        Figure(
            "died",
            0 if survived or case.ends else 1,
            0,
            error or (f"killed after {case.seconds:g} s" if overtime else ""),
        ),
        Figure("kept MB", kept, bounds.kept),
        Figure("peak MB", target.peak_megabytes() - before, bounds.peak),
    ]
    if error and survived:
        figures.append(Figure("attack ended early", 1, 0, error))
    if case.probed:
        figures.append(Figure("wait s", max(probes.get("worst", {"": 99.0}).values()), bounds.wait))
        failures = probes.get("failures", {})
        figures.append(Figure("probes failed", sum(failures.values()), bounds.failures, str(failures or "")))
    figures.append(Figure("stop s", target.stop_seconds(_STOP_WITHIN), bounds.stop))
    figures.append(Figure("exit status", abs(target.process.returncode), 0))
    figures.append(Figure("log kB", (target.log_bytes() - log_before) / 1e3, bounds.log))
    figures.extend(case.after(target))
    return figures


def _warm_up(target: Target) -> None:
    """A few requests, so that what is imported and allocated once does not count as growth."""
    inputs = [tensor(name, "FP32", [1, 16], list(range(16))) for name in ("INPUT0", "INPUT1")]
    for _ in range(20):
        ask(target.ports.http, "POST", infer_path("add_sub"), json_infer(*inputs))
    ask(target.ports.metrics, "GET", "/metrics")


@contextlib.contextmanager
def _probed(target: Target, probed: bool) -> Iterator[dict[str, Any]]:
    """A prober beside the block; its figures are there when the block has ended."""
    figures: dict[str, Any] = {}
    if not probed:
        yield figures
        return
    command = [sys.executable, "-I", str(_PROBER), str(target.ports.http)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as prober:
        assert prober.stdout is not None
        prober.stdout.readline()
        try:
            yield figures
        finally:
            try:
                output, _ = prober.communicate(timeout=70)
                figures.update(json.loads(output or "{}"))
            except subprocess.TimeoutExpired:
                prober.kill()


@contextlib.contextmanager
def _killed_late(target: Target, seconds: float) -> Iterator[list[bool]]:
    """Kill the server when the block takes too long: what waits for an answer then gets an error."""
    overtime: list[bool] = []

    def kill() -> None:
        overtime.append(True)
        target.process.kill()

    timer = threading.Timer(seconds, kill)
    timer.start()
    try:
        yield overtime
    finally:
        timer.cancel()
