"""Tables on a narrow terminal."""

import io

import pytest
from rich.console import Console

from naiad_cli.tables import drawn_table


def test_a_narrow_terminal_cuts_no_cell() -> None:
    reason = "/srv/repositories/production/float_annotation/1/model.py:317: parameter 'a' has no annotation"
    stream = io.StringIO()

    Console(file=stream, width=60).print(
        drawn_table(("Model", "Version", "State", "Reason"), [("float_annotation", "1", "UNAVAILABLE", reason)])
    )

    lines = stream.getvalue().splitlines()
    column = "".join(line.rpartition("│")[0].rpartition("│")[2].strip() for line in lines if "│" in line)
    assert max(map(len, lines)) <= 60
    assert "…" not in stream.getvalue()
    assert column.replace(" ", "") == reason.replace(" ", "")
    assert "UNAVAILABLE" in stream.getvalue()


FIGURES = ("Model", "Version", "State", "Req/s", "p50 ms", "p99 ms", "Batch", "Queue", "In flight", "Err/s")


@pytest.mark.parametrize("width", [30, 60, 79, 80, 100, 200])
def test_many_columns_stay_whole_at_every_width(width: int) -> None:
    row = ("detector_of_red_lights", "1", "UNAVAILABLE", "1234.5", "10.25", "99.75", "4.00", "17", "31", "0.5")
    stream = io.StringIO()

    Console(file=stream, width=width).print(drawn_table(FIGURES, [row, ("words", "12", "READY", *[""] * 7)]))

    text = stream.getvalue()
    assert max(map(len, text.splitlines())) <= width
    assert [cell for cell in row[1:] if cell not in text] == []
    first_cells = [line.strip(" │").partition(" ")[0] for line in text.splitlines()]
    assert row[0] in "".join(first_cells)
    assert "…" not in text


def test_a_row_is_a_block_where_its_columns_have_no_room() -> None:
    stream = io.StringIO()

    Console(file=stream, width=40).print(drawn_table(FIGURES, [("words", "12", "READY", "1.0", *[""] * 5, "0.0")]))

    assert [line.rstrip() for line in stream.getvalue().splitlines()] == [
        "words",
        "  Version: 12  State: READY  Req/s: 1.0",
        "  Err/s: 0.0",
    ]


def test_a_block_keeps_a_name_and_its_figure_in_one_line() -> None:
    stream = io.StringIO()
    row = ("words", "12", "READY", "1.0", "", "", "", "0", "0", "0.0")

    Console(file=stream, width=60).print(drawn_table(FIGURES, [row]))

    assert [line.rstrip() for line in stream.getvalue().splitlines()] == [
        "words",
        "  Version: 12  State: READY  Req/s: 1.0  Queue: 0",
        "  In flight: 0  Err/s: 0.0",
    ]
