"""The status line, as a terminal would see it."""

import io

from naiad_cli.terminal import StatusLine


def seen(written: str) -> list[str]:
    """The lines that stay on a terminal that got this text."""
    lines = [""]
    for part in written.replace("\n", "\0\n\0").split("\0"):
        if part == "\n":
            lines.append("")
        else:
            lines[-1] = part.rsplit("\r\033[2K", 1)[-1] if "\r\033[2K" in part else lines[-1] + part
    return lines


def test_the_line_stays_below_what_is_written_above_it() -> None:
    terminal = io.StringIO()
    status = StatusLine(terminal, columns=80)

    status.show("1 of 2 models")
    status.above(terminal).write("one\n")
    status.above(terminal).write("two\n")
    status.show("2 of 2 models")

    assert seen(terminal.getvalue()) == ["one", "two", "2 of 2 models"]


def test_an_empty_line_leaves_nothing_behind() -> None:
    terminal = io.StringIO()
    status = StatusLine(terminal, columns=80)

    status.show("1 of 2 models")
    status.show("")
    status.above(terminal).write("one\n")

    assert seen(terminal.getvalue()) == ["one", ""]


def test_the_line_never_wraps() -> None:
    terminal = io.StringIO()
    status = StatusLine(terminal, columns=10)

    status.show("x" * 50)

    assert seen(terminal.getvalue()) == ["x" * 9]
