"""SVG pictures of a simulation: the arrivals above, the batches of each instance below.

Nothing depends on fonts, locale or chance: the same log gives the same bytes.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from html import escape

from naiad_testing.history import Log
from naiad_testing.timeline import MOST_BATCHES, Column, columns_of, lane_word

_WIDTH, _MARGIN, _RIGHT, _LANE, _GAP = 960, 120, 20, 24, 16
_COLOURS = ("#8ecae6", "#ffb703", "#95d5b2", "#f4978e", "#cdb4db", "#e9c46a", "#a3b18a", "#bde0fe")
_STYLE = (
    "text{font:12px sans-serif;fill:#222}.b{font-weight:bold}.s{font-size:10px;fill:#666}"
    ".m{text-anchor:middle}.e{text-anchor:end}line{stroke:#ddd}"
    ".n{fill:#fff;stroke:#bbb;stroke-dasharray:3 2}.x{stroke:#c00;stroke-width:2}"
)


@dataclass(frozen=True, slots=True)
class Signal:
    """A control tensor to be shown below the rows: its name, and which rows it is true for."""

    name: str
    start: bool = False
    ready: bool = False
    end: bool = False


def picture(log: Log, title: str = "", signals: Sequence[Signal] = (), most: int = MOST_BATCHES) -> str:
    """The first `most` batches of a log and what came by then, as the text of an SVG file."""
    return _Picture(log, signals, most).text(title)


class _Picture:
    def __init__(self, log: Log, signals: Sequence[Signal], most: int) -> None:
        self._log = log
        self._signals = signals
        self._columns = columns_of(log)[:most]
        self._word = lane_word(log)
        self._end = max((column.end for column in self._columns), default=0.0) or 1e-3
        self._arrivals = [
            (ticket, arrival)
            for ticket, arrival in enumerate(log.arrivals, 1)
            if arrival.time <= max((column.start for column in self._columns), default=0.0)
        ]
        self._names = list(dict.fromkeys(self._name(ticket) for ticket, _ in self._arrivals))
        self._colours = {name: _COLOURS[index % len(_COLOURS)] for index, name in enumerate(self._names)}
        self._parts: list[str] = []
        self._y = 0

    def text(self, title: str) -> str:
        """The whole file."""
        if title:
            self._y += 26
            self._write(_MARGIN, self._y - 6, title, "b")
        self._draw_arrivals()
        for instance in range(self._log.instances):
            self._draw_instance(instance, [column for column in self._columns if column.instance == instance])
        height = self._y + 34
        axis = list(self._axis())
        head = (
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {height}" width="{_WIDTH}" '
            f'height="{height}"><style>{_STYLE}</style><rect width="{_WIDTH}" height="{height}" fill="#fff"/>'
        )
        return "\n".join((head, *axis, *self._parts, "</svg>", ""))

    def _name(self, arrival: int) -> str:
        """What an arrival is called; each request of its own is called by its number."""
        return str(self._log.arrivals[arrival - 1].sequence_id or arrival)

    # What came

    def _draw_arrivals(self) -> None:
        in_sequences = any(arrival.sequence_id for _, arrival in self._arrivals)
        lanes = self._names if in_sequences else [""]
        self._section("arrivals")
        for lane in lanes:
            y = self._lane(f"sequence {lane}" if lane else "requests")
            for number, arrival in self._arrivals:
                if lane in ("", self._name(number)):
                    self._arrival(self._x(arrival.time), y, self._name(number), labelled=not lane)
        if not in_sequences:
            self._y += 8

    def _arrival(self, x: float, y: int, name: str, labelled: bool) -> None:
        middle = y + _LANE / 2
        fill = self._colours[name]
        self._parts.append(f'<circle cx="{x:.1f}" cy="{middle:.1f}" r="6" fill="{fill}" stroke="#555"/>')
        if labelled:
            self._write(x, middle + 18, name, "s m")

    # What ran

    def _draw_instance(self, instance: int, columns: Sequence[Column]) -> None:
        self._section(f"instance {instance}")
        top = self._y
        for row in range(max((len(column.cells) for column in columns), default=1)):
            self._lane(f"{self._word} {row}")
        for column in columns:
            self._batch(column, top)
        if self._word == "row" and not self._signals:
            y = self._lane("because")
            for column in columns:
                if self._x(column.end) - self._x(column.start) >= 5 * len(column.reason):
                    self._write(self._x(column.start) + 2, y + 14, column.reason, "s")
        for signal in self._signals:
            y = self._lane(signal.name)
            for column in columns:
                values = " ".join(map(str, _values(signal, column)))
                self._write(self._x(column.start) + 2, y + 16, values, "s")

    def _batch(self, column: Column, top: int) -> None:
        x, width = self._x(column.start), self._x(column.end) - self._x(column.start)
        for row, cell in enumerate(column.cells):
            y = top + row * _LANE + 1
            where = f'x="{x:.1f}" y="{y}" width="{width:.1f}" height="{_LANE - 2}"'
            if not cell.name:
                self._parts.append(f'<rect class="n" {where}/>')
                continue
            self._parts.append(f'<rect {where} fill="{self._colours.get(cell.name, "#ddd")}" stroke="#555"/>')
            if width >= 8 * len(cell.text):
                self._write(x + width / 2, y + 15, cell.text, "m")
        if column.lost:
            bottom = top + len(column.cells) * _LANE
            self._parts.append(f'<line class="x" x1="{x:.1f}" y1="{top}" x2="{x + width:.1f}" y2="{bottom}"/>')

    # Where things are

    def _axis(self) -> Iterator[str]:
        bottom = self._y + 6
        for tick in _ticks(self._end):
            x = self._x(tick)
            yield f'<line x1="{x:.1f}" y1="26" x2="{x:.1f}" y2="{bottom}"/>'
            yield f'<text class="s m" x="{x:.1f}" y="{bottom + 14}">{tick * 1e3:g} ms</text>'

    def _section(self, name: str) -> None:
        self._y += _GAP
        self._write(8, self._y + 12, name, "b")
        self._y += 18

    def _lane(self, name: str) -> int:
        self._write(_MARGIN - 10, self._y + 16, name, "e")
        self._y += _LANE
        return self._y - _LANE

    def _x(self, time: float) -> float:
        return _MARGIN + time / self._end * (_WIDTH - _MARGIN - _RIGHT)

    def _write(self, x: float, y: float, words: str, style: str) -> None:
        self._parts.append(f'<text class="{style}" x="{x:.1f}" y="{y:.1f}">{escape(words)}</text>')


def _values(signal: Signal, column: Column) -> list[int]:
    return [
        int((signal.ready and bool(cell.name)) or (signal.start and cell.start) or (signal.end and cell.end))
        for cell in column.cells
    ]


def _ticks(end: float) -> Iterator[float]:
    """Some ten round times from 0 on, in seconds."""
    step = next(step * 10.0**power for power in range(-12, 9) for step in (1, 2, 5) if end / (step * 10.0**power) <= 12)
    count = int(end / step)
    for number in range(count + 1):
        yield number * step
