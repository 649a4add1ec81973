"""Tables: drawn with rich on a terminal, tab-separated plain lines in a pipe."""

import sys
from collections.abc import Mapping, Sequence

from naiad_cli.logs import takes_colours

_STATES: Mapping[str, str] = {"READY": "green", "LOADING": "yellow", "UNLOADING": "yellow", "UNAVAILABLE": "red"}


def print_table(columns: Sequence[str], rows: Sequence[Sequence[str]], title: str = "") -> None:
    """Print the rows to stdout: a table with colours on a terminal, else one line a row, its cells split by tabs."""
    if sys.stdout.isatty():
        _draw(columns, rows, title)
        return
    for row in (tuple(columns), *rows):
        print("\t".join(" ".join(cell.split()) for cell in row).rstrip("\t"))


def _draw(columns: Sequence[str], rows: Sequence[Sequence[str]], title: str) -> None:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(*columns, title=title or None, title_justify="left")
    for row in rows:
        table.add_row(*(Text(cell, style=_STATES.get(cell, "")) for cell in row))
    Console(no_color=not takes_colours(sys.stdout)).print(table)
