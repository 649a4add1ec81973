"""Drawing of an ensemble for its page: an SVG picture of the graph of its steps, and below when each of them runs.

Nothing depends on fonts, locale or chance: the same ensemble gives the same bytes.
"""

import heapq
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from itertools import count

from naiad_config import EnsembleStep, ModelConfig
from naiad_scheduler_ensemble.composition import EnsembleComposition
from naiad_scheduler_ensemble.graph import REQUEST, producers_of, steps_of
from naiad_scheduler_ensemble.moves import Moves, StepStart

_WIDTH, _MARGIN, _RIGHT = 960, 120, 20
_BOX, _HIGH, _ROW, _LANE, _TOP = 120, 34, 64, 28, 40
_COLOURS = ("#8ecae6", "#ffb703", "#95d5b2", "#f4978e", "#cdb4db", "#e9c46a", "#a3b18a", "#bde0fe")
_STYLE = (
    "text{font:12px sans-serif;fill:#222}.b{font-weight:bold}.s{font-size:10px;fill:#666}.m{text-anchor:middle}"
    ".e{text-anchor:end}line{stroke:#ddd}"
)
_ARROW = (
    '<marker id="to" viewBox="0 0 8 8" refX="8" refY="4" markerWidth="8" markerHeight="8" orient="auto">'
    '<polygon points="0,0 8,4 0,8" fill="#777"/></marker>'
)


@dataclass(frozen=True, slots=True)
class Bar:
    """A step that ran from one second to another."""

    step: int
    start: float
    end: float


@dataclass(frozen=True, slots=True)
class _Stand:
    """Stands for a tensor: only that it is there matters."""

    shape: tuple[int, ...] = ()


def picture(config: ModelConfig, composition: EnsembleComposition, seconds: Mapping[str, Sequence[float]]) -> str:
    """The text of an SVG file of an ensemble, whose steps take so many seconds.

    `seconds` are by model: how long it takes to each of its responses, one after the other; only a decoupled one has
    several. No step waits for an instance.
    """
    bars, answers = play(config, composition, seconds)
    steps = steps_of(config)
    graph = list(_graph(config, steps))
    bottom = max(y for _, y in _coordinates(config, steps).values()) + _HIGH + 30
    timeline, height = _timeline(steps, bars, answers, bottom)
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {height}" width="{_WIDTH}" '
        f'height="{height}"><style>{_STYLE}</style><defs>{_ARROW}</defs>'
        f'<rect width="{_WIDTH}" height="{height}" fill="#fff"/>'
    )
    return "\n".join((head, *graph, *timeline, "</svg>", ""))


def play(
    config: ModelConfig, composition: EnsembleComposition, seconds: Mapping[str, Sequence[float]]
) -> tuple[list[Bar], list[float]]:
    """When each step runs and when the client is answered, in a request for all outputs."""
    steps = steps_of(config)
    run = composition.run({model_input.name: _Stand() for model_input in config.input}, ())
    bars: list[Bar] = []
    answers: list[float] = []
    events: list[tuple[float, int, StepStart, bool]] = []
    numbers = count()

    def take(moves: Moves, now: float) -> None:
        answers.extend(now for response in moves.responses if response.outputs)
        for start in moves.starts:
            times = seconds[steps[start.step].model_name]
            at = now
            for index, each in enumerate(times):
                at += each
                heapq.heappush(events, (at, next(numbers), start, index == len(times) - 1))
            bars.append(Bar(start.step, now, at))

    take(run.begin(), 0.0)
    while events:
        now, _, start, final = heapq.heappop(events)
        outputs = {name: _Stand() for name in steps[start.step].output_map}
        take(run.answered(start, outputs, final), now)
    return bars, answers


def _graph(config: ModelConfig, steps: Sequence[EnsembleStep]) -> Iterator[str]:
    """Inputs on the left, outputs on the right, each step right of all that it reads."""
    coordinates = _coordinates(config, steps)
    producers = producers_of(config)
    yield f'<text class="b" x="8" y="20">{escape(config.name)}</text>'
    readers = [(f"step {index}", tensor) for index, step in enumerate(steps) for tensor in step.input_map.values()]
    readers += [(f"out {model_output.name}", model_output.name) for model_output in config.output]
    for reader, tensor in readers:
        source = f"in {tensor}" if producers[tensor] == REQUEST else f"step {producers[tensor]}"
        (x1, y1), (x2, y2) = coordinates[source], coordinates[reader]
        start_x, start_y, end_x, end_y = x1 + _BOX, y1 + _HIGH / 2, x2, y2 + _HIGH / 2
        middle = (start_x + end_x) / 2
        curve = (
            f"M{start_x:.1f},{start_y:.1f} C{middle:.1f},{start_y:.1f} {middle:.1f},{end_y:.1f} {end_x:.1f},{end_y:.1f}"
        )
        yield f'<path d="{curve}" fill="none" stroke="#777" marker-end="url(#to)"/>'
        if source.startswith("step") and reader.startswith("step"):
            yield f'<text class="s m" x="{middle:.1f}" y="{(start_y + end_y) / 2 - 6:.1f}">{escape(tensor)}</text>'
    for key, (x, y) in coordinates.items():
        kind, name = key.split(" ", 1)
        where = f'x="{x:.1f}" y="{y:.1f}" width="{_BOX}" height="{_HIGH}"'
        if kind == "step":
            yield f'<rect {where} rx="4" fill="{_colour(int(name))}" stroke="#555"/>'
            name = steps[int(name)].model_name
        else:
            yield f'<rect {where} rx="17" fill="#fff" stroke="#777"/>'
        yield f'<text class="m" x="{x + _BOX / 2:.1f}" y="{y + _HIGH / 2 + 4:.1f}">{escape(name)}</text>'


def _coordinates(config: ModelConfig, steps: Sequence[EnsembleStep]) -> dict[str, tuple[float, float]]:
    """The upper left corner of every input, step and output."""
    producers = producers_of(config)

    def depth(index: int) -> int:
        before = [producers[tensor] for tensor in steps[index].input_map.values()]
        return 1 + max((depth(each) for each in before if each != REQUEST), default=0)

    columns: dict[int, list[str]] = {0: [f"in {model_input.name}" for model_input in config.input]}
    for index in range(len(steps)):
        columns.setdefault(depth(index), []).append(f"step {index}")
    last = max(columns) + 1
    columns[last] = [f"out {model_output.name}" for model_output in config.output]
    most = max(map(len, columns.values()))
    apart = (_WIDTH - 2 * _RIGHT - _BOX) / last
    return {
        key: (_RIGHT + column * apart, _TOP + (row + (most - len(keys)) / 2) * _ROW)
        for column, keys in columns.items()
        for row, key in enumerate(keys)
    }


def _timeline(
    steps: Sequence[EnsembleStep], bars: Sequence[Bar], answers: Sequence[float], top: float
) -> tuple[list[str], int]:
    """A lane for each step, and one for the answers."""
    end = max((bar.end for bar in bars), default=0.0) or 1e-3
    bottom = top + (len(steps) + 1) * _LANE

    def x(time: float) -> float:
        return _MARGIN + time / end * (_WIDTH - _MARGIN - _RIGHT)

    parts = []
    for tick in range(11):
        at = x(end * tick / 10)
        parts.append(f'<line x1="{at:.1f}" y1="{top:.1f}" x2="{at:.1f}" y2="{bottom:.1f}"/>')
        parts.append(f'<text class="s m" x="{at:.1f}" y="{bottom + 14:.1f}">{end * tick * 100:.4g} ms</text>')
    for lane, name in enumerate([*(step.model_name for step in steps), "answers"]):
        parts.append(f'<text class="e" x="{_MARGIN - 10}" y="{top + lane * _LANE + 18:.1f}">{escape(name)}</text>')
    for bar in bars:
        where = f'x="{x(bar.start):.1f}" y="{top + bar.step * _LANE + 3:.1f}"'
        size = f'width="{x(bar.end) - x(bar.start):.1f}" height="{_LANE - 6}"'
        parts.append(f'<rect {where} {size} fill="{_colour(bar.step)}" stroke="#555"/>')
    for answer in answers:
        y = top + len(steps) * _LANE + _LANE / 2
        parts.append(f'<circle cx="{x(answer):.1f}" cy="{y:.1f}" r="6" fill="#fff" stroke="#555"/>')
    return parts, int(bottom + 24)


def _colour(step: int) -> str:
    return _COLOURS[step % len(_COLOURS)]
