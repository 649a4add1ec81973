"""Translation of one operator: its inputs, outputs and arguments, and the table of known operators."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np

from naiad_caffe2.translation.arguments import Arguments, TranslationError
from naiad_caffe2.translation.graph import Graph, Shape


@dataclass(frozen=True, slots=True)
class Operator:
    """An operator whose inputs are values of the graph; `outputs` are the names of blobs, `where` its position."""

    type: str
    where: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    arguments: Arguments
    graph: Graph

    def emit(self, kind: str, *inputs: str, **attributes: Any) -> str:
        """The one value that an ONNX node of this kind gives."""
        return self.emit_many(kind, inputs, 1, **attributes)[0]

    def emit_many(self, kind: str, inputs: Sequence[str], count: int, **attributes: Any) -> list[str]:
        """The values that an ONNX node of this kind gives. Raises TranslationError when its inputs do not fit."""
        names = [self.outputs[min(index, len(self.outputs) - 1)] for index in range(count)]
        try:
            return self.graph.add(kind, inputs, names, attributes)
        except ValueError as error:
            shapes = ", ".join(f"'{name}' {_shape_text(self.graph.shape(name))}" for name in self.inputs)
            raise self.error(f"cannot take its inputs {shapes}: {error}") from error

    def integers(self, *values: int) -> str:
        """A constant, INT64[n]."""
        return self.graph.constant(np.array(values, np.int64))

    def scalar_like(self, value: float, like: str) -> str:
        """A constant without dims, of the type of another value."""
        return self.graph.constant(np.array(value, self.dtype(like)))

    def dtype(self, name: str) -> np.dtype:
        """The numpy type of a value. Raises TranslationError where it is not known."""
        from onnx import helper

        kind = self.graph.element_type(name)
        if not kind:
            raise self.error(f"needs the type of '{name}', which no operator before it gives")
        return np.dtype(helper.tensor_dtype_to_np_dtype(kind))

    def shape(self, name: str) -> Shape:
        """The shape of a value. Raises TranslationError when even its rank is not known."""
        shape = self.graph.shape(name)
        if shape is None:
            raise self.error(f"needs the number of dims of '{name}', which no operator before it gives")
        return shape

    def rank(self, name: str) -> int:
        """The number of dims of a value, likewise."""
        return len(self.shape(name))

    def axis(self, name: str, axis: int) -> int:
        """The axis of a value, counted from its first one. Raises TranslationError when it has no such axis."""
        rank = self.rank(name)
        if not -rank <= axis < rank:
            raise self.error(f"has axis {axis}, and its input '{name}' has {rank} dims")
        return axis % rank

    def order(self) -> str:
        """`NCHW` or `NHWC`, as its arguments say."""
        order = self.arguments.text("order", "NCHW").upper()
        if order not in ("NCHW", "NHWC"):
            raise self.error(f"has the order '{order}'; there are NCHW and NHWC")
        return order

    def channels_first(self, name: str) -> str:
        """The value with its last axis in second place."""
        rank = self.rank(name)
        return self.emit("Transpose", name, perm=[0, rank - 1, *range(1, rank - 1)])

    def channels_last(self, name: str) -> str:
        """The value with its second axis in last place."""
        rank = self.rank(name)
        return self.emit("Transpose", name, perm=[0, *range(2, rank), 1])

    def error(self, message: str) -> TranslationError:
        """An error that begins with the place of this operator."""
        return TranslationError(f"{self.where} {message}")


Translate = Callable[[Operator], str | Sequence[str]]
"""Adds what an operator does to the graph; the values of its outputs, as many as there are."""

_F = TypeVar("_F", bound=Translate)


@dataclass(frozen=True, slots=True)
class Known:
    """An operator that can be translated, with how many inputs and outputs it may have."""

    translate: Translate
    inputs: range
    outputs: range


OPERATORS: dict[str, Known] = {}
"""Every operator that is known, by its type."""

MANY = 1_000_000


def operator(*types: str, inputs: int | tuple[int, int] = 1, outputs: int | tuple[int, int] = 1) -> Callable[[_F], _F]:
    """Enter a function for these types; bounds include both ends."""

    def enter(translate: _F) -> _F:
        for name in types:
            OPERATORS[name] = Known(translate, _bounds(inputs), _bounds(outputs))
        return translate

    return enter


def _bounds(count: int | tuple[int, int]) -> range:
    least, most = (count, count) if isinstance(count, int) else count
    return range(least, most + 1)


def _shape_text(shape: Shape | None) -> str:
    return "of any shape" if shape is None else f"[{','.join('?' if dim is None else str(dim) for dim in shape)}]"
