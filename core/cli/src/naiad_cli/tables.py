"""Listings: tables drawn with rich on a terminal, tab-separated plain lines in a pipe, or JSON."""

import json
import sys
from argparse import ArgumentParser
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from naiad_cli.logs import takes_colours

if TYPE_CHECKING:
    from rich.console import Console, ConsoleOptions, RenderableType
    from rich.table import Table

_STATES: Mapping[str, str] = {"READY": "green", "LOADING": "yellow", "UNLOADING": "yellow", "UNAVAILABLE": "red"}


_SHORT = 12
"""Columns up to this width keep it on a narrow terminal; longer cells go on in the next line, uncut."""

_NARROWEST = 8
"""The width that other columns have at least."""


def add_json_option(parser: ArgumentParser) -> None:
    """Add `--json`, which every command with a listing takes."""
    parser.add_argument("--json", action="store_true", help="print JSON instead of a table")


def print_json(document: Any) -> None:
    """Print a document as JSON, on one line in a pipe and indented on a terminal."""
    print(json.dumps(document, ensure_ascii=False, indent=2 if sys.stdout.isatty() else None))


def print_warnings(warnings: Iterable[str]) -> None:
    """Print warnings on stderr, one a line."""
    for warning in warnings:
        print(f"warning: {warning}", file=sys.stderr)


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


def drawn_table(columns: Sequence[str], rows: Sequence[Sequence[str]], title: str = "") -> "DrawnTable":
    """The table as rich draws it; no cell is cut."""
    return DrawnTable(columns, rows, title)


class DrawnTable:
    """A table that fits the terminal: with lines, without them where it is narrow, or a block for each row."""

    def __init__(self, columns: Sequence[str], rows: Sequence[Sequence[str]], title: str) -> None:
        self._columns, self._rows, self._title = columns, rows, title
        self._widths = [max(map(len, cells)) for cells in zip(columns, *rows, strict=True)]

    def __rich_console__(self, console: "Console", options: "ConsoleOptions") -> "Iterator[RenderableType]":
        least = sum(width if width <= _SHORT else _NARROWEST for width in self._widths)
        count = len(self._widths)
        if least + 3 * count + 1 <= options.max_width:
            yield self._table()
        elif least + count - 1 <= options.max_width:
            yield self._table(box=None, padding=(0, 1, 0, 0), pad_edge=False)
        else:
            yield from self._blocks(options.max_width)

    def _table(self, **style: Any) -> "Table":
        from rich.table import Table
        from rich.text import Text

        table = Table(title=self._title or None, title_justify="left", **style)
        for column, width in zip(self._columns, self._widths, strict=True):
            table.add_column(column, overflow="fold", no_wrap=width <= _SHORT)
        for row in self._rows:
            table.add_row(*(Text(cell, style=_STATES.get(cell, "")) for cell in row))
        return table

    def _blocks(self, width: int) -> "Iterator[RenderableType]":
        """The first cell of each row, and below it the others with the names of their columns."""
        from rich.padding import Padding
        from rich.text import Text

        if self._title:
            yield Text(self._title, style="italic")
        for first, *others in self._rows:
            yield Text(first, style="bold", overflow="fold")
            named = [f"{column}: {cell}" for column, cell in zip(self._columns[1:], others, strict=True) if cell]
            yield Padding(Text("\n".join(_filled_lines(named, width - 2)), overflow="fold"), (0, 0, 0, 2))


def _filled_lines(fields: Sequence[str], width: int) -> list[str]:
    """Lines of this width with as many of the fields as have room; a line is longer if one field alone is."""
    lines: list[str] = []
    for field in fields:
        if lines and len(lines[-1]) + 2 + len(field) <= width:
            lines[-1] += f"  {field}"
        else:
            lines.append(field)
    return lines


def _draw(columns: Sequence[str], rows: Sequence[Sequence[str]], title: str) -> None:
    from rich.console import Console

    Console(no_color=not takes_colours(sys.stdout)).print(drawn_table(columns, rows, title))
