"""Layout of an ensemble as a graph: inputs, steps and outputs in layers, and tensors between them. Pure."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from naiad_config import ModelConfig

_WIDTH, _HEIGHT = 190, 58
"""The size of a box in the units of the picture."""
_NARROW = 164
"""The width of a box of a graph that grows down: two of them fit beside each other on a phone."""
_EDGE = 12


@dataclass(frozen=True, slots=True)
class Box:
    """A box with its upper left corner; `model` is the model of a step, "" for inputs and outputs."""

    label: str
    x: int
    y: int
    model: str = ""
    version: int = 0


@dataclass(frozen=True, slots=True)
class Arrow:
    """A tensor of the ensemble on its way from one box to another; `path` is that of an SVG, x and y its label's."""

    tensor: str
    path: str
    x: int
    y: int


@dataclass(frozen=True, slots=True)
class Graph:
    """A drawing of `width` by `height` units, with boxes of the size `box`."""

    width: int
    height: int
    box: tuple[int, int]
    boxes: tuple[Box, ...]
    arrows: tuple[Arrow, ...]


@dataclass(frozen=True, slots=True)
class _Direction:
    """Where a graph grows: its layers follow each other along it, and the boxes of one layer stand across it."""

    down: bool
    length: int
    breadth: int
    gap: int
    """Between two layers."""
    beside: int
    """Between the boxes of one layer."""

    def at(self, along: int, across: int) -> tuple[int, int]:
        """The x and y of a point."""
        return (across, along) if self.down else (along, across)

    def text(self, along: int, across: int) -> str:
        """The point in a path of an SVG."""
        x, y = self.at(along, across)
        return f"{x} {y}"


_RIGHT = _Direction(False, _WIDTH, _HEIGHT, 90, 26)
_DOWN = _Direction(True, _HEIGHT, _NARROW, 56, 12)


@dataclass(frozen=True, slots=True)
class _Node:
    """A node in a column: `key` is unique; `label` "" is where an arrow passes the column."""

    key: tuple[str, object]
    column: int
    label: str = ""
    model: str = ""
    version: int = 0


def graph(config: ModelConfig, down: bool = False) -> Graph:
    """The graph of an ensemble: each step one column to the right of the last one that it needs, or below it."""
    to = _DOWN if down else _RIGHT
    nodes, tensors = _nodes_and_tensors(config)
    routes = {(tensor, source, target): list(_route(tensor, source, target)) for tensor, source, target in tensors}
    columns: list[list[_Node]] = [[] for _ in range(max((node.column for node in nodes), default=0) + 1)]
    for node in dict.fromkeys([*nodes, *(node for route in routes.values() for node in route[1:-1])]):
        columns[node.column].append(node)
    _untangle(columns, routes.values())
    rows = max(map(len, columns))
    corners = {node.key: corner for column in columns for node, corner in _corners(column, rows, to)}
    boxes = (Box(each.label, *to.at(*corners[each.key]), each.model, each.version) for each in nodes)
    arrows = (_arrow(tensor, [corners[node.key] for node in route], to) for (tensor, *_), route in routes.items())
    length = len(columns) * (to.length + to.gap) - to.gap + 2 * _EDGE
    breadth = rows * (to.breadth + to.beside) - to.beside + 2 * _EDGE
    return Graph(*to.at(length, breadth), to.at(to.length, to.breadth), tuple(boxes), tuple(arrows))


def _nodes_and_tensors(config: ModelConfig) -> tuple[list[_Node], list[tuple[str, _Node, _Node]]]:
    """The inputs, steps and outputs, and each tensor with the nodes that it leads from and to."""
    steps = config.ensemble_scheduling.step if config.ensemble_scheduling is not None else ()
    makers = {tensor: index for index, step in enumerate(steps) for tensor in step.output_map.values()}
    columns = _columns([set(step.input_map.values()) for step in steps], makers)
    of_step = [
        _Node(("step", index), column, step.model_name, step.model_name, max(0, step.model_version))
        for index, (step, column) in enumerate(zip(steps, columns, strict=True))
    ]
    sources = {each.name: _Node(("input", each.name), 0, each.name) for each in config.input}
    inputs = list(sources.values())
    sources |= {tensor: of_step[index] for tensor, index in makers.items()}
    outputs = [_Node(("output", each.name), max(columns, default=0) + 1, each.name) for each in config.output]
    tensors = [
        (tensor, sources[tensor], node)
        for step, node in zip(steps, of_step, strict=True)
        for tensor in dict.fromkeys(step.input_map.values())
        if tensor in sources
    ]
    tensors += [(node.label, sources[node.label], node) for node in outputs if node.label in sources]
    return [*inputs, *of_step, *outputs], tensors


def _columns(needs: list[set[str]], makers: Mapping[str, int]) -> list[int]:
    """The column of each step from 1 up. A ring, which no loaded ensemble has, would end after one round a step."""
    columns = [1] * len(needs)
    for _ in needs:
        for index, tensors in enumerate(needs):
            before = [columns[makers[tensor]] for tensor in tensors if tensor in makers]
            columns[index] = min(len(needs), max(before, default=0) + 1)
    return columns


def _route(tensor: str, source: _Node, target: _Node) -> Iterator[_Node]:
    """The nodes of an arrow: it passes each column between its ends, once for all arrows of one tensor."""
    yield source
    for column in range(source.column + 1, target.column):
        yield _Node(("pass", (tensor, column)), column)
    yield target


def _untangle(columns: Sequence[list[_Node]], routes: Iterable[Sequence[_Node]]) -> None:
    """Order each column by where its arrows come from, so that fewer of them cross; inputs stay as declared."""
    sources: dict[tuple[str, object], list[_Node]] = {}
    for route in routes:
        for source, target in pairwise(route):
            sources.setdefault(target.key, []).append(source)
    for before, column in pairwise(columns):
        rows = {node.key: row for row, node in enumerate(before)}
        heights = {
            node.key: [rows[each.key] for each in sources.get(node.key, ()) if each.key in rows] for node in column
        }
        column.sort(key=lambda node: sum(heights[node.key]) / max(1, len(heights[node.key])))


def _corners(column: list[_Node], rows: int, to: _Direction) -> Iterator[tuple[_Node, tuple[int, int]]]:
    """The corner of each node, along and across the direction; the column is centred in the breadth of the picture."""
    first = _EDGE + (rows - len(column)) * (to.breadth + to.beside) // 2
    for index, node in enumerate(column):
        yield node, (_EDGE + node.column * (to.length + to.gap), first + index * (to.breadth + to.beside))


def _arrow(tensor: str, corners: list[tuple[int, int]], to: _Direction) -> Arrow:
    points = [(along, across + to.breadth // 2) for along, across in corners]
    path = f"M{to.text(points[0][0] + to.length, points[0][1])}"
    for (along, across), (next_along, next_across) in pairwise(points):
        middle = along + to.length + to.gap // 2
        last = (next_along, next_across) == points[-1]
        end = to.text(next_along - 5 if last else next_along, next_across)
        path += f" C{to.text(middle, across)} {to.text(middle, next_across)} {end}"
        path += "" if last else f" L{to.text(next_along + to.length, next_across)}"
    label = to.at(points[0][0] + to.length + to.gap // 2, (points[0][1] + points[1][1]) // 2)
    return Arrow(tensor, path, *label)
