"""Drawing of the way of a request: an SVG picture of its Python calls, with a column for each room and time downwards.

Nothing depends on fonts, locale or chance: the same calls give the same bytes.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from html import escape
from itertools import groupby, pairwise

_CHARACTER, _LINE, _PADDING = 7.0, 14, 6
_COLUMN, _GAP, _BETWEEN = 232, 16, 20
_MARGIN, _HEAD = 16, 104
_CHARACTERS = int((_COLUMN - 2 * _PADDING) / _CHARACTER)
_COLOURS = ("#cfe5f5", "#f9dcc4", "#fdeeb5", "#d5ecd4", "#e6dcf2", "#ececec", "#d9f0ee", "#f5d7e3")
_ROOMS = ("frontend", "naiad: server", "naiad: engine", "scheduler", "backend")
_UPPER_LAYERS = ("naiad/_server/", "naiad/_lifecycle/")
_STYLE = (
    "text{font:11px monospace;fill:#222}.t{font:bold 16px sans-serif}.h{font:bold 12px sans-serif}"
    ".s{font:11px sans-serif;fill:#555}.f{font-weight:bold}.m{text-anchor:middle}"
)
_ARROW = (
    '<marker id="to" viewBox="0 0 8 8" refX="8" refY="4" markerWidth="7" markerHeight="7" orient="auto">'
    '<polygon points="0,0 8,4 0,8" fill="#555"/></marker>'
)


@dataclass(frozen=True, slots=True)
class Call:
    """One Python call: which thread ran it, in which distribution and file, and what was called."""

    thread: str
    distribution: str
    file: str
    function: str


@dataclass(frozen=True, slots=True)
class Line:
    """A line of a box: a file in bold, or functions that were called in it."""

    text: str
    is_file: bool


@dataclass(frozen=True, slots=True)
class Box:
    """Consecutive calls in one room on one thread, and how far down the box begins."""

    room: str
    thread: str
    calls: tuple[Call, ...]
    top: int

    def lines(self) -> list[Line]:
        """The files in the order of their first calls, each with what was called in it."""
        files: dict[str, list[Call]] = {}
        for call in self.calls:
            name = "libraries" if call.distribution == "libraries" else call.file
            files.setdefault(name, []).append(call)
        lines: list[Line] = []
        for file, within in files.items():
            lines.append(Line(_shown(file), is_file=True))
            lines += [Line(text, is_file=False) for text in _wrapped(_names(within))]
        return lines

    @property
    def height(self) -> int:
        return _LINE * len(self.lines()) + 2 * _PADDING

    @property
    def bottom(self) -> int:
        return self.top + self.height


def picture(title: str, calls: Sequence[Call]) -> str:
    """The text of an SVG file that shows the calls: a column for each room, and the boxes in the order of time."""
    stations = boxes(calls)
    rooms = sorted({box.room for box in stations}, key=_rank)
    width = 2 * _MARGIN + len(rooms) * _COLUMN + (len(rooms) - 1) * _GAP
    height = stations[-1].bottom + _MARGIN
    offsets = {room: _MARGIN + index * (_COLUMN + _GAP) for index, room in enumerate(rooms)}
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}">'
        f'<style>{_STYLE}</style><defs>{_ARROW}</defs><rect width="{width}" height="{height}" fill="#fff"/>'
    )
    explanation = (
        f'<text class="s" x="{_MARGIN}" y="47">Boxes are in the order of time, from top to bottom; a box has the calls '
        "of each file. The shaded boxes run on the thread of the model's instance, all others on the event loop.</text>"
    )
    heading = f'<text class="t" x="{_MARGIN}" y="28">{escape(title)}: {_counted(len(calls), "Python call")}</text>'
    columns = [part for room, x in offsets.items() for part in _column_head(stations, room, x + _COLUMN / 2)]
    arrows = [_arrow(box, after, offsets) for box, after in pairwise(stations)]
    filled = [part for box in stations for part in _drawn(box, offsets[box.room], _COLOURS[rooms.index(box.room)])]
    return "\n".join((head, *_threads(stations, width), heading, explanation, *columns, *arrows, *filled, "</svg>", ""))


def boxes(calls: Sequence[Call]) -> list[Box]:
    """The calls in boxes below each other: a new one begins where the room or the thread changes."""
    stations: list[Box] = []
    for (room, thread), run in groupby(_with_rooms(calls), key=lambda pair: (pair[0], pair[1].thread)):
        top = stations[-1].bottom + _BETWEEN if stations else _HEAD
        stations.append(Box(room, thread, tuple(call for _, call in run), top))
    return stations


def _with_rooms(calls: Sequence[Call]) -> Iterator[tuple[str, Call]]:
    """Each call with its room; a call of a library stays in the room of the code that ran before it."""
    rooms = [None if call.distribution == "libraries" else _room(call) for call in calls]
    current = next((room for room in rooms if room is not None), "libraries")
    for room, call in zip(rooms, calls, strict=True):
        current = room or current
        yield current, call


def _room(call: Call) -> str:
    if call.distribution == "kernel":
        return "naiad: server, lifecycle" if call.file.startswith(_UPPER_LAYERS) else "naiad: engine, contract"
    return "backend, model" if call.distribution in ("backend", "model") else call.distribution


def _rank(room: str) -> tuple[int, str]:
    return next((index for index, name in enumerate(_ROOMS) if room.startswith(name)), len(_ROOMS)), room


def _names(calls: Sequence[Call]) -> Iterator[str]:
    """What was called in one file: methods without their classes, constructors as `Class()`, comprehensions as […]."""
    if calls[0].distribution == "libraries":
        yield _counted(len(calls), "call")
        return
    for name, times in Counter(_short(call.function) for call in calls).items():
        yield f"{name} ×{times}" if times > 1 else name


def _short(function: str) -> str:
    *outer, name = function.replace(".<locals>", "").split(".")
    if name == "__init__" and outer:
        return f"{outer[-1]}()"
    return f"{outer[-1]} […]" if name.startswith("<") and outer else name


def _shown(file: str) -> str:
    """A file below its package; of the contract with the package, whose files have no folder."""
    package, _, rest = file.partition("/")
    return file if package == "naiad" and not rest.startswith("_") else rest or file


def _wrapped(names: Iterable[str]) -> Iterator[str]:
    """The names in lines that fit into a column; one that is longer than a line is cut."""
    line = ""
    for whole in names:
        name = whole if len(whole) < _CHARACTERS - 1 else f"{whole[: _CHARACTERS - 3]}…"
        longer = f"{line}, {name}" if line else name
        if line and len(longer) > _CHARACTERS - 2:
            yield f"{line},"
            longer = name
        line = longer
    yield line


def _counted(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def _column_head(stations: Sequence[Box], room: str, middle: float) -> Iterator[str]:
    within = [call for box in stations if box.room == room for call in box.calls]
    own = [call for call in within if call.distribution != "libraries"]
    count = f"{_counted(len(own), 'call')} in {_counted(len({call.file for call in own}), 'file')}"
    libraries = f", {len(within) - len(own)} in libraries" if len(own) < len(within) else ""
    yield f'<text class="h m" x="{middle}" y="76">{escape(room)}</text>'
    yield f'<text class="s m" x="{middle}" y="92">{count}{libraries}</text>'


def _threads(stations: Sequence[Box], width: int) -> Iterator[str]:
    """A shaded band behind the boxes that run on another thread than the event loop."""
    for thread, run in groupby(stations, key=lambda box: box.thread):
        within = list(run)
        if thread != "loop":
            top, bottom = within[0].top - _BETWEEN // 2, within[-1].bottom + _BETWEEN // 2
            yield f'<rect y="{top}" width="{width}" height="{bottom - top}" fill="#f1efe9"/>'


def _arrow(box: Box, after: Box, offsets: dict[str, int]) -> str:
    """From a box to the next one, dashed where another thread goes on."""
    begin, end = offsets[box.room] + _COLUMN // 2, offsets[after.room] + _COLUMN // 2
    middle = (box.bottom + after.top) // 2
    dashes = ' stroke-dasharray="4 3"' if box.thread != after.thread else ""
    return (
        f'<path d="M{begin},{box.bottom} V{middle} H{end} V{after.top}" fill="none" stroke="#555"{dashes} '
        'marker-end="url(#to)"/>'
    )


def _drawn(box: Box, x: int, colour: str) -> Iterator[str]:
    yield (
        f'<rect x="{x}" y="{box.top}" width="{_COLUMN}" height="{box.height}" rx="4" fill="{colour}" stroke="#777"/>'
    )
    for index, line in enumerate(box.lines()):
        y = box.top + _PADDING + _LINE * (index + 1) - 4
        style, indent = (' class="f"', 0) if line.is_file else ("", _CHARACTER)
        yield f'<text{style} x="{x + _PADDING + indent:.1f}" y="{y}">{escape(line.text)}</text>'
