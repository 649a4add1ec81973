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


START = "inference request for sequence 3 must specify the START flag on the first request of the sequence"


@pytest.mark.parametrize(
    ("mode", "ends", "works", "runs"),
    [
        ("grpc sequences, oldest, request rate", [START, START, ""], True, 3),
        ("grpc sequences, oldest, request rate", [START] * 9, False, 4),
        ("grpc sequences, oldest, request rate", ["the server is gone", ""], False, 1),
        ("grpc sequences, oldest, request rate, serial", [START, ""], False, 1),
    ],
)
def test_a_mode_in_which_perf_analyzer_mixes_up_requests_is_tried_again(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, mode: str, ends: list[str], works: bool, runs: int
) -> None:
    monkeypatch.syspath_prepend(str(BENCH))
    import perf_analyzer_modes as script
    from load import PerfAnalyzer
    from servers import Ports, Running

    program, endings = tmp_path / "perf_analyzer", tmp_path / "ends"
    program.write_text(
        f"#!/bin/sh\nline=$(head -n 1 {endings}); sed -i 1d {endings}\n"
        '[ "$line" ] && { echo "$line"; exit 99; }\necho "throughput: 5 infer/sec p99 latency: 7 usec"\n'
    )
    program.chmod(0o755)
    endings.write_text("\n".join(ends) + "\n")
    running = Running("", Ports(1, 2, 3), None, 0.0)  # type: ignore[arg-type]
    (chosen,) = [each for each in script.modes() if each.name == mode]

    worked = script._works(PerfAnalyzer((str(program),), 500, 900), running, chosen, tmp_path)

    assert (worked, len(ends) - len(endings.read_text().splitlines())) == (works, runs)


def test_where_perf_analyzer_is_missing_it_says_so(tmp_path: Path) -> None:
    environment = {"PATH": str(tmp_path), "NAIAD_PEER": str(tmp_path / "peer")}

    ended = subprocess.run(
        [sys.executable, BENCH / "perf_analyzer_modes.py"], env=environment, capture_output=True, text=True
    )

    assert ended.returncode == 0
    assert ended.stderr.startswith("perf_analyzer was not found: there is no peer script at")
