"""The chart of an explanation."""

import re
from pathlib import Path
from typing import Any

from naiad_cli.chart import drawn, plain, rows

EXECUTION = {
    "instance": "add_sub_0",
    "batch_size": 4,
    "requests": 3,
    "closed": "full",
    "started": 402.8,
    "input_done": 421.0,
    "infer_done": 1310.4,
    "output_done": 1322.7,
}
PLAIN: dict[str, Any] = {
    "model": "add_sub",
    "version": 1,
    "received": 0.0,
    "queued": 61.3,
    "executions": [EXECUTION],
    "answered": 1391.5,
    "encoded": 1420.1,
}


def test_every_phase_is_a_row_and_they_meet() -> None:
    table = rows(PLAIN)

    assert [name for name, *_ in table] == ["take in", "wait", "input", "infer", "output", "answer", "encode"]
    ends = [round(float(start) + float(took), 1) for _, start, took, _ in table]
    assert ends == [61.3, 402.8, 421.0, 1310.4, 1322.7, 1391.5, 1420.1]
    assert [float(start) for _, start, _, _ in table] == [0.0, *ends[:-1]]


def test_the_page_shows_the_chart_as_it_is_drawn() -> None:
    page = (Path(__file__).parents[3] / "docs" / "cli.md").read_text(encoding="utf-8")

    (shown,) = re.findall(r"```text example\n(Phase .*?)```", page, re.DOTALL)

    assert drawn(PLAIN) == shown.splitlines()


def test_steps_are_indented_below_their_models() -> None:
    step = {"model": "first", "version": 2, "cache": "miss", "looked_up": 5.0, "queued": 6.0} | {
        "executions": [EXECUTION],
        "answered": 1350.0,
    }
    report = {"model": "pipe", "version": 1, "received": 0.0, "queued": 4.0, "steps": [step], "answered": 1400.0}

    table = rows(report)

    assert [name for name, *_ in table][1:-1] == ["first", "  take in", "  wait", "  input", "  infer", "  output"]
    assert table[1][1:] == ("5.0", "1345.0", "version 2")
    assert [name for name, *_ in plain(report)] == [
        "take in",
        "first",
        *(f"first/{phase}" for phase in ("take in", "wait", "input", "infer", "output")),
        "answer",
    ]


def test_a_hit_of_the_cache_has_no_executions() -> None:
    report = {"model": "m", "version": 1, "received": 0.0, "cache": "hit", "looked_up": 9.0, "answered": 12.0}

    assert rows(report) == [("look up", "0.0", "9.0", "cache hit"), ("answer", "9.0", "3.0", "")]


def test_the_cache_may_be_asked_behind_the_checks() -> None:
    report = {"model": "m", "version": 1, "received": 0.0, "queued": 4.0, "cache": "miss", "looked_up": 9.0} | {
        "executions": [EXECUTION],
        "answered": 1400.0,
    }

    assert [row[:3] for row in rows(report)[:3]] == [
        ("take in", "0.0", "4.0"),
        ("look up", "4.0", "5.0"),
        ("wait", "9.0", "393.8"),
    ]


def test_a_stream_tells_its_responses() -> None:
    message = PLAIN | {"responses": {"count": 5, "first": 500.0, "last": 1300.5}}

    assert rows(message)[-2][3] == "5 responses from 500.0 to 1300.5"


def test_bars_stay_within_their_column_whatever_the_times_are() -> None:
    report = {"model": "m", "version": 1, "received": 0.0, "queued": 0.0, "answered": 0.0}

    assert drawn(report)[1:] == ["answer       0.0      0.0"]
    assert all(len(line) <= 80 for line in drawn(PLAIN))
