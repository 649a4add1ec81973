"""Tables on a narrow terminal."""

import io

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
