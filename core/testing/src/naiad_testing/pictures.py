"""SVG pictures of a simulation: the arrivals above, the batches of each instance below."""

from collections.abc import Iterator, Mapping, Sequence, Set
from html import escape

from naiad_testing.history import Log
from naiad_testing.timeline import MOST_BATCHES, Column, columns_of, lane_word

_WIDTH, _MARGIN, _RIGHT, _ROW = 960, 120, 20, 24
_COLOURS = ("#8ecae6", "#ffb703", "#95d5b2", "#f4978e", "#cdb4db", "#e9c46a", "#a3b18a", "#bde0fe")
_HEAD = """<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {0} {1}" width="{0}" height="{1}"><style>
text{{font:12px sans-serif;fill:#222;text-anchor:middle}}.b{{font-weight:bold;text-anchor:start}}.e{{text-anchor:end}}
.s{{font-size:10px;fill:#666}}line{{stroke:#ddd}}rect{{stroke:#555}}.n{{stroke:#bbb;stroke-dasharray:3 2}}
.x{{stroke:#c00;stroke-width:3}}</style><rect width="{0}" height="{1}" fill="#fff" style="stroke:none"/>"""
_LOST = ' class="x"'

_Signals = Mapping[str, Set[str]]
_Mark = tuple[float, float, str, str]
"""Text from one time to another, and the attributes of the box around it, if it has one."""


def picture(log: Log, signals: _Signals | None = None) -> str:
    """The first `MOST_BATCHES` batches of a log and what came by then, as the text of an SVG file.

    `signals` are control tensors to be shown: their names, and the flags of a cell that each is 1 for. The same log
    gives the same bytes.
    """
    columns = columns_of(log)[:MOST_BATCHES]
    rows = list(_rows(log, columns, signals or {}))
    end = max((column.end for column in columns), default=0.0) or 1e-3
    scale, bottom = (_WIDTH - _MARGIN - _RIGHT) / end, _ROW * len(rows)
    parts = [_HEAD.format(_WIDTH, bottom + _ROW)]
    for tick in _ticks(end):
        x = _MARGIN + tick * scale
        parts.append(f'<line x1="{x:.1f}" y1="24" x2="{x:.1f}" y2="{bottom}"/>')
        parts.append(_text(x, bottom + 14, f"{tick * 1e3:g} ms", "s"))
    for y, (label, marks) in zip(range(0, bottom, _ROW), rows, strict=True):
        parts.append(_text(_MARGIN - _ROW, y + 16, label, "e") if marks else _text(8, y + 16, label, "b"))
        for start, stop, text, box in marks:
            x, width, height, small = _MARGIN + start * scale, (stop - start) * scale, _ROW - 2, not box
            if start == stop:
                x, width, height, small = x - 8, 16, 16, True
            top = y + (_ROW - height) // 2
            if box:
                parts.append(f'<rect x="{x:.1f}" y="{top}" width="{width:.1f}" height="{height}" {box}/>')
            if width >= (5 if small else 7) * len(text):
                parts.append(_text(x + width / 2, y + 16, text, "s" if small else "m"))
    return "\n".join((*parts, "</svg>", ""))


def _rows(log: Log, columns: Sequence[Column], signals: _Signals) -> Iterator[tuple[str, Sequence[_Mark]]]:
    """Each row of the picture with its label; a row without marks is a heading."""
    last = max((column.start for column in columns), default=0.0)
    boxes, lanes = {"": 'fill="#fff" class="n"'}, dict[str, list[_Mark]]()
    for number, arrival in enumerate(log.arrivals, 1):
        if arrival.time <= last:
            name = str(arrival.sequence_id or number)
            box = boxes.setdefault(name, f'fill="{_COLOURS[(len(boxes) - 1) % len(_COLOURS)]}"')
            lane, text = (f"sequence {name}", "") if arrival.sequence_id else ("requests", name)
            lanes.setdefault(lane, []).append((arrival.time, arrival.time, text, f'{box} rx="8"'))
    yield from (("arrivals", ()), *lanes.items())
    for instance in range(log.instances):
        own = [column for column in columns if column.instance == instance]
        yield f"instance {instance}", ()
        for row in range(max((len(column.cells) for column in own), default=0)):
            used = [(column, column.cells[row]) for column in own if row < len(column.cells)]
            marks = [
                (at.start, at.end, cell.name and cell.text, boxes[cell.name] + at.lost * _LOST) for at, cell in used
            ]
            yield f"{lane_word(log)} {row}", marks
        for name, flags in signals.items():
            values = [" ".join("01"[not flags.isdisjoint(cell.flags)] for cell in column.cells) for column in own]
            yield name, [(column.start, column.end, text, "") for column, text in zip(own, values, strict=True)]
        if lane_word(log) == "row" and not signals:
            yield "because", [(column.start, column.end, column.reason, "") for column in own]


def _text(x: float, y: float, words: str, style: str) -> str:
    return f'<text class="{style}" x="{x:.1f}" y="{y:.1f}">{escape(words)}</text>'


def _ticks(end: float) -> Iterator[float]:
    """Some ten round times from 0 on, in seconds."""
    step = next(step * 10.0**power for power in range(-12, 9) for step in (1, 2, 5) if end / (step * 10.0**power) <= 12)
    return (number * step for number in range(int(end / step) + 1))
