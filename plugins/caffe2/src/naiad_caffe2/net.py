"""Translation of a model: the predict net and its init net to one ONNX model."""

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from naiad_caffe2.translation import operators
from naiad_caffe2.translation.arguments import Arguments, TranslationError
from naiad_caffe2.translation.graph import Graph, Shape
from naiad_caffe2.translation.operator import OPERATORS, Operator

__all__ = ["GivenInput", "Translated", "TranslatedOutput", "inputs_of", "translate"]

operators.enter_all()
_MOST_LISTED = 5


@dataclass(frozen=True, slots=True)
class GivenInput:
    """What comes in: the element type, a number of `onnx.TensorProto`, and the shape, with names for variable sizes."""

    element_type: int
    shape: Shape


@dataclass(frozen=True, slots=True)
class TranslatedOutput:
    """What comes out: the value of the graph, its element type (0 when it is not known), its shape (None likewise)."""

    value: str
    element_type: int
    shape: Shape | None


@dataclass(frozen=True, slots=True)
class Translated:
    """A graph that takes inputs by the names of blobs, and what it gives, by those of blobs as well."""

    graph: Graph
    outputs: Mapping[str, TranslatedOutput]

    def model(self, outputs: Collection[str]) -> tuple[Any, dict[str, np.ndarray]]:
        """An `onnx.ModelProto` that gives these of the outputs, and the large weights that it needs beside it."""
        return self.graph.model([self.outputs[name].value for name in outputs])


def inputs_of(net: Any, init: Any, named: Collection[str] = ()) -> list[str]:
    """The blobs that a caller gives: external inputs that the init net does not make.

    Those that are `named` are among them in any case: the converter from Caffe writes a fill for the input as well, so
    that there is a blob of that name.
    """
    computed = {name for definition in init.op for name in definition.output}
    return [name for name in dict.fromkeys(net.external_input) if name not in computed or name in named]


def translate(net: Any, init: Any, inputs: Mapping[str, GivenInput]) -> Translated:
    """Both nets as one graph, which takes these inputs and gives all external outputs.

    Raises TranslationError, naming operators with their places, for everything that cannot be translated faithfully.
    """
    _refuse_unknown(net, init)
    graph = Graph()
    blobs = _Blobs()
    graph_inputs = {name: graph.input(name, each.element_type, each.shape) for name, each in inputs.items()}
    for definition, where in _operators(init, "the init net"):
        _translate_one(definition, where, blobs, graph)
    blobs.values |= graph_inputs
    for definition, where in _operators(net, "the net"):
        _translate_one(definition, where, blobs, graph)
    values: dict[str, str] = {}
    for name in dict.fromkeys(net.external_output):
        values[name] = _output(name, blobs, graph, values.values())
    if not values:
        raise TranslationError("the net has no external_output, so it gives nothing")
    outputs = {
        name: TranslatedOutput(value, graph.element_type(value), graph.shape(value)) for name, value in values.items()
    }
    return Translated(graph, outputs)


class _Blobs:
    """What each blob holds now; an operator that writes over a blob gives it another value."""

    def __init__(self) -> None:
        self.values: dict[str, str] = {}
        self.missing: dict[str, str] = {}

    def read(self, name: str, where: str) -> str:
        if name in self.values:
            return self.values[name]
        if name in self.missing:
            raise TranslationError(f"{where} reads '{name}', {self.missing[name]}")
        raise TranslationError(
            f"{where} reads '{name}', which no operator before it, no input and no init net gives a value"
        )


def _operators(net: Any, which: str) -> Iterator[tuple[Any, str]]:
    for index, definition in enumerate(net.op):
        name = f" ('{definition.name}')" if definition.name else ""
        yield definition, f"operator {index} {definition.type}{name} of {which}"


def _refuse_unknown(net: Any, init: Any) -> None:
    unknown = [
        where
        for which, each in (("the init net", init), ("the net", net))
        for definition, where in _operators(each, which)
        if definition.type not in OPERATORS
    ]
    if unknown:
        more = f" and {len(unknown) - _MOST_LISTED} more" if len(unknown) > _MOST_LISTED else ""
        raise TranslationError(
            f"naiad-caffe2 does not know {', '.join(unknown[:_MOST_LISTED])}{more}; docs/caffe2.md lists the "
            "operators that it knows"
        )


def _translate_one(definition: Any, where: str, blobs: _Blobs, graph: Graph) -> None:
    known = OPERATORS[definition.type]
    for side, count, bounds in (
        ("inputs", len(definition.input), known.inputs),
        ("outputs", len(definition.output), known.outputs),
    ):
        if count not in bounds:
            raise TranslationError(f"{where} has {count} {side}; it takes {_bounds_text(bounds)}")
    values = tuple(blobs.read(name, where) for name in definition.input)
    arguments = Arguments(definition.arg, where)
    one = Operator(definition.type, where, values, tuple(definition.output), arguments, graph)
    try:
        translated = known.translate(one)
    except TranslationError:
        raise
    except Exception as error:
        raise TranslationError(f"{where} cannot be translated: {type(error).__name__}: {error}") from error
    arguments.refuse_unread()
    results = [translated] if isinstance(translated, str) else list(translated)
    for index, name in enumerate(definition.output):
        blobs.values.pop(name, None)
        if index < len(results) and results[index]:
            blobs.values[name] = results[index]
        else:
            blobs.missing[name] = f"output {index} of {where}, which naiad-caffe2 does not compute"


def _output(name: str, blobs: _Blobs, graph: Graph, taken: Collection[str]) -> str:
    """The value of an output, computed by a node and used for no other output."""
    value = blobs.read(name, "external_output")
    if graph.is_computed(value) and value not in taken:
        return value
    return graph.add("Identity", [value], [name], {})[0]


def _bounds_text(bounds: range) -> str:
    least, most = bounds[0], bounds[-1]
    if least == most:
        return str(least)
    return f"{least} to {most}" if most < 100 else f"{least} or more"
