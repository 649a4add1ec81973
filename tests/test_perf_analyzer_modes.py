"""The list of perf_analyzer's modes: each has a name of its own, and none is run where the program is not installed."""

import subprocess
import sys
from pathlib import Path

import pytest

BENCH = Path(__file__).resolve().parent.parent / "bench"


def test_every_mode_has_a_name_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(BENCH))
    from perf_analyzer_modes import modes

    names = [mode.name for mode in modes()]

    assert len(names) == len(set(names))
    for name in ("sync", "async", "request rate", "system shared memory, sync"):
        assert {f"http {name}", f"grpc {name}"} <= set(names)
    assert {"http json in, json out", "http binary in, binary out", "grpc streaming, decoupled"} <= set(names)
    for name in ("sync", "async", "ids in a range", "request rate, serial"):
        assert {f"http ensemble, {each}" for each in ("sync", "async")} <= set(names)
        assert {f"http sequences, direct, {name}", f"grpc sequences, oldest, {name}"} <= set(names)


def test_where_perf_analyzer_is_missing_it_says_so(tmp_path: Path) -> None:
    environment = {"PATH": str(tmp_path), "NAIAD_PEER": str(tmp_path / "peer")}

    ended = subprocess.run(
        [sys.executable, BENCH / "perf_analyzer_modes.py"], env=environment, capture_output=True, text=True
    )

    assert ended.returncode == 0
    assert ended.stderr.startswith("perf_analyzer was not found: there is no peer script at")
