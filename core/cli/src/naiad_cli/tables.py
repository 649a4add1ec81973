"""Listings: tables drawn with rich on a terminal, tab-separated plain lines in a pipe, or JSON."""

import json
import sys
from argparse import ArgumentParser
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from naiad_cli.logs import takes_colours

if TYPE_CHECKING:
    from rich.table import Table

_STATES: Mapping[str, str] = {"READY": "green", "LOADING": "yellow", "UNLOADING": "yellow", "UNAVAILABLE": "red"}


_SHORT = 12
"""Columns up to this width keep it on a narrow terminal; longer cells go on in the next line, uncut."""


def add_json_option(parser: ArgumentParser) -> None:
    """Add `--json`, which every command with a listing takes."""
    parser.add_argument("--json", action="store_true", help="print JSON instead of a table")


def print_json(document: Any) -> None:
    """Print a document as JSON, on one line in a pipe and indented on a terminal."""
    print(json.dumps(document, ensure_ascii=False, indent=2 if sys.stdout.isatty() else None))


def coloured(text: str, colour: str) -> str:
    """The text in a colour, `green`, `yellow` or `red`, where stdout is a terminal that takes colours."""
    codes = {"green": 32, "yellow": 33, "red": 31}
    return f"\033[{codes[colour]}m{text}\033[0m" if takes_colours(sys.stdout) else text


def print_table(columns: Sequence[str], rows: Sequence[Sequence[str]], title: str = "") -> None:
    """Print the rows to stdout: a table with colours on a terminal, else one line a row, its cells split by tabs."""
    if sys.stdout.isatty():
        _draw(columns, rows, title)
        return
    for row in (tuple(columns), *rows):
        print("\t".join(" ".join(cell.split()) for cell in row).rstrip("\t"))


def drawn_table(columns: Sequence[str], rows: Sequence[Sequence[str]], title: str = "") -> "Table":
    """The table as rich draws it; no cell is cut."""
    from rich.table import Table
    from rich.text import Text

    table = Table(title=title or None, title_justify="left")
    for index, column in enumerate(columns):
        widest = max((len(row[index]) for row in rows), default=0)
        table.add_column(column, overflow="fold", no_wrap=max(widest, len(column)) <= _SHORT)
    for row in rows:
        table.add_row(*(Text(cell, style=_STATES.get(cell, "")) for cell in row))
    return table


def _draw(columns: Sequence[str], rows: Sequence[Sequence[str]], title: str) -> None:
    from rich.console import Console

    Console(no_color=not takes_colours(sys.stdout)).print(drawn_table(columns, rows, title))
