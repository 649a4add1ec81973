"""Layout of an ensemble as a graph: inputs, steps and outputs in columns, and tensors between them. Pure."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import pairwise

from naiad_config import ModelConfig

WIDTH, HEIGHT = 190, 58
"""The size of a box in the units of the picture."""
_GAP_X, _GAP_Y, _EDGE = 90, 26, 12


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
    """A drawing of so many units."""

    width: int
    height: int
    boxes: tuple[Box, ...]
    arrows: tuple[Arrow, ...]


@dataclass(frozen=True, slots=True)
class _Node:
    """A node in a column: `key` is unique; `label` "" is where an arrow passes the column."""

    key: tuple[str, object]
    column: int
    label: str = ""
    model: str = ""
    version: int = 0


def graph(config: ModelConfig) -> Graph:
    """The graph of an ensemble: each step one column to the right of the last one that it needs."""
    nodes, tensors = _nodes_and_tensors(config)
    routes = {(tensor, source, target): list(_route(tensor, source, target)) for tensor, source, target in tensors}
    columns: list[list[_Node]] = [[] for _ in range(max((node.column for node in nodes), default=0) + 1)]
    for node in dict.fromkeys([*nodes, *(node for route in routes.values() for node in route[1:-1])]):
        columns[node.column].append(node)
    rows = max(map(len, columns))
    corners = {node.key: corner for column in columns for node, corner in _corners(column, rows)}
    boxes = (Box(each.label, *corners[each.key], each.model, each.version) for each in nodes)
    arrows = (_arrow(tensor, [corners[node.key] for node in route]) for (tensor, *_), route in routes.items())
    width = len(columns) * (WIDTH + _GAP_X) - _GAP_X + 2 * _EDGE
    return Graph(width, rows * (HEIGHT + _GAP_Y) - _GAP_Y + 2 * _EDGE, tuple(boxes), tuple(arrows))


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


def _corners(column: list[_Node], rows: int) -> Iterator[tuple[_Node, tuple[int, int]]]:
    """The upper left corner of each node, the column centred in the height of the picture."""
    top = _EDGE + (rows - len(column)) * (HEIGHT + _GAP_Y) // 2
    for index, node in enumerate(column):
        yield node, (_EDGE + node.column * (WIDTH + _GAP_X), top + index * (HEIGHT + _GAP_Y))


def _arrow(tensor: str, corners: list[tuple[int, int]]) -> Arrow:
    points = [(x, y + HEIGHT // 2) for x, y in corners]
    path = f"M{points[0][0] + WIDTH} {points[0][1]}"
    for (x, y), (to_x, to_y) in pairwise(points):
        middle = x + WIDTH + _GAP_X // 2
        last = (to_x, to_y) == points[-1]
        path += f" C{middle} {y} {middle} {to_y} {to_x - 5 if last else to_x} {to_y}"
        path += "" if last else f" H{to_x + WIDTH}"
    return Arrow(tensor, path, points[0][0] + WIDTH + _GAP_X // 2, (points[0][1] + points[1][1]) // 2)
