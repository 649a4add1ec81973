"""Timeline of a simulation: the requests in each row of each batch, as text or as the data of a picture."""

from collections.abc import Iterator, Sequence, Set
from dataclasses import dataclass

from naiad_testing.history import Ended, Log, Lost, Sent

MOST_BATCHES = 40
"""How many batches a timeline shows where nothing else is said."""


@dataclass(frozen=True, slots=True)
class Cell:
    """One row of a batch. `name` is the sequence, or the request where there are none; "" is a row without one."""

    name: str = ""
    start: bool = False
    end: bool = False

    @property
    def flags(self) -> Set[str]:
        """What control tensors can say of the row: `ready`, `start`, `end`."""
        flags = {"ready": bool(self.name), "start": self.start, "end": self.end}
        return {flag for flag, holds in flags.items() if holds}

    @property
    def text(self) -> str:
        """The name with `+` for the first request of a sequence and `-` for its last; `.` for a row without one."""
        return f"{self.name}{'+' * self.start}{'-' * self.end}" if self.name else "."


@dataclass(frozen=True, slots=True)
class Column:
    """One batch, from its start to its end; `lost` says that its instance died."""

    start: float
    end: float
    instance: int
    reason: str
    cells: tuple[Cell, ...]
    lost: bool = False


def columns_of(log: Log) -> tuple[Column, ...]:
    """The batches of a log as they are drawn, in the order in which they were sent."""
    ends: dict[tuple[int, tuple[int, ...]], tuple[float, bool]] = {}
    for entry in log.entries:
        if isinstance(entry, Ended | Lost):
            ends[entry.instance, entry.tickets] = (entry.time, isinstance(entry, Lost))
    columns = []
    for sent in log.sent:
        end, lost = ends[sent.instance, sent.tickets]
        columns.append(Column(sent.time, end, sent.instance, sent.reason, _cells(log, sent), lost))
    return tuple(columns)


def timeline(log: Log, most: int = MOST_BATCHES, columns_of_terminal: int = 0) -> Iterator[str]:
    """Lines with a column for each instant at which batches were sent, and a row for each slot of each instance.

    `most` is how many batches are shown, from the first on; a last line says how many are not. On a terminal of so many
    columns the lines go on in further blocks of lines, each below an empty line; 0 breaks no line.
    """
    columns = columns_of(log)
    shown = columns[:most]
    instants = sorted({column.start for column in shown})
    lanes = [(instance, row) for instance in range(log.instances) for row in range(_depth(shown, instance))]
    heads = ["ms", *(f"{instance} {lane_word(log)} {row}" for instance, row in lanes)]
    table = [[f"{instant * 1e3:.4g}" for instant in instants]]
    for instance, row in lanes:
        here = {column.start: column.cells for column in shown if column.instance == instance}
        table.append([_at(here.get(instant, ()), row) for instant in instants])
    widths = [max(len(line[index]) for line in table) for index in range(len(instants))]
    first = max(map(len, heads))
    for number, block in enumerate(_blocks(widths, columns_of_terminal - first)):
        if number:
            yield ""
        for head, line in zip(heads, table, strict=True):
            yield "  ".join((head.ljust(first), *map(str.ljust, line[block], widths[block]))).rstrip()
    if len(columns) > len(shown):
        yield f"… and {len(columns) - len(shown)} more batches"


def _blocks(widths: Sequence[int], room: int) -> Iterator[slice]:
    """The columns that fit side by side, each behind two spaces, block by block; all where there is no `room`."""
    start, used = 0, 0
    for index, width in enumerate(widths):
        if 0 < room < used + 2 + width and index > start:
            yield slice(start, index)
            start, used = index, 0
        used += 2 + width
    yield slice(start, len(widths))


def name_of(log: Log, ticket: int) -> str:
    """What a ticket is called: its sequence, or its number where the request names none."""
    return str(log.arrival_of(ticket).sequence_id or log.origin_of(ticket))


def lane_word(log: Log) -> str:
    """What a row of a batch is called: a slot where a sequence keeps it."""
    return "slot" if any(not row.ticket for sent in log.sent for row in sent.rows) else "row"


def _cells(log: Log, sent: Sent) -> tuple[Cell, ...]:
    if not sent.rows:
        return tuple(Cell(name_of(log, ticket)) for ticket in sent.tickets)
    return tuple(Cell(name_of(log, row.ticket), row.start, row.end) if row.ticket else Cell() for row in sent.rows)


def _depth(columns: Sequence[Column], instance: int) -> int:
    return max((len(column.cells) for column in columns if column.instance == instance), default=0)


def _at(cells: Sequence[Cell], row: int) -> str:
    return cells[row].text if row < len(cells) else ""
