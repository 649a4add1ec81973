"""Choice of the optimisation profile and the CUDA graph for a batch, by its shapes. Pure."""

from collections.abc import Mapping, Sequence
from itertools import chain

from naiad_tensorrt.description import Profile, Range, Shape
from naiad_tensorrt.options import GraphSpec


def profile_for(shapes: Mapping[str, Shape], values: Mapping[str, Shape], profiles: Sequence[Profile]) -> int | None:
    """The index of the profile whose optimum is nearest to these whole shapes and values; None where none holds them.

    The distance is the sum of what each dim and each value is off; of two at the same distance the first is taken.
    """
    holding = [profile for profile in profiles if _holds(profile, shapes, values)]
    if not holding:
        return None
    return min(holding, key=lambda profile: _distance(profile, shapes, values)).index


def graph_for(
    profile: int, shapes: Mapping[str, Shape], values: Mapping[str, Shape], graphs: Sequence[GraphSpec]
) -> int | None:
    """The place of the graph that serves these whole shapes and values with the fewest elements to fill up, or None."""
    serving = [
        index
        for index, graph in enumerate(graphs)
        if graph.profile == profile and graph.values == values and _serves(graph, shapes)
    ]
    return min(serving, key=lambda index: _excess(graphs[index], shapes), default=None)


def _holds(profile: Profile, shapes: Mapping[str, Shape], values: Mapping[str, Shape]) -> bool:
    return all(
        _within(shape, profile.shapes[name]) for name, shape in shapes.items() if name in profile.shapes
    ) and all(_within(value, profile.values[name]) for name, value in values.items() if name in profile.values)


def _within(shape: Shape, bounds: Range) -> bool:
    least, _, most = bounds
    if not len(shape) == len(least) == len(most):
        return False
    return all(low <= dim <= high for low, dim, high in zip(least, shape, most, strict=True))


def _distance(profile: Profile, shapes: Mapping[str, Shape], values: Mapping[str, Shape]) -> int:
    pairs = chain(
        ((shape, profile.shapes[name][1]) for name, shape in shapes.items() if name in profile.shapes),
        ((value, profile.values[name][1]) for name, value in values.items() if name in profile.values),
    )
    return sum(abs(one - other) for have, best in pairs for one, other in zip(have, best, strict=True))


def _serves(graph: GraphSpec, shapes: Mapping[str, Shape]) -> bool:
    if graph.shapes.keys() != shapes.keys():
        return False
    return all(_within(shape, (graph.lower[name], (), graph.shapes[name])) for name, shape in shapes.items())


def _excess(graph: GraphSpec, shapes: Mapping[str, Shape]) -> int:
    return sum(
        most - dim for name, shape in shapes.items() for most, dim in zip(graph.shapes[name], shape, strict=True)
    )
