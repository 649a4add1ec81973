"""Tensors of many requests that share one layout: they are made when somebody asks for them, and often nobody does.

A frontend that has received the bytes of an input need not make a tensor of them: the batch joins the bytes.
"""

from collections.abc import Hashable, ItemsView, Iterator, Mapping, Sequence, ValuesView
from typing import NamedTuple

import numpy as np

from naiad_tensors.tensors import Tensor

FEW_BYTES = 4096
"""Up to this size a copy of a tensor costs less than what it saves."""

_ndarray = np.ndarray  # numpy looks its names up at each use: 0.05 µs


class Field(NamedTuple):
    """An input in the bytes of its request: it begins at `start` and has `size` bytes, in row-major order."""

    name: str
    datatype: str
    shape: tuple[int, ...]
    dtype: np.dtype
    start: int
    size: int


class InputLayout:
    """Where the inputs of many requests are in their bytes; they have `nbytes` together.

    It keeps the result `checked` of one check, and by whom.
    """

    __slots__ = ("checked", "fields", "nbytes", "small")

    def __init__(self, fields: Sequence[Field] = ()) -> None:
        self.checked: tuple[object, tuple[int, Hashable]] = None, (0, None)
        self.fields = tuple(fields)
        self.nbytes = sum(each.size for each in fields)
        self.small = {each.name: each for each in fields if each.shape and each.size <= FEW_BYTES}


class LaidOutInputs(Mapping[str, Tensor]):
    """Inputs in `content`, the received bytes, whose fields count from `start`; read-only.

    They are checked once for all that have the `layout`. Inputs whose bytes are not their elements come as `tensors`.
    """

    __slots__ = ("_tensors", "content", "layout", "start")

    def __init__(
        self,
        layout: InputLayout,
        content: bytes | bytearray | memoryview,
        start: int = 0,
        tensors: dict[str, Tensor] | None = None,
    ) -> None:
        self.layout = layout
        self.content = content
        self.start = start
        self._tensors = tensors

    def __getitem__(self, name: str) -> Tensor:
        return (self._tensors or self._build())[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._tensors or self._build())

    def __len__(self) -> int:
        return len(self._tensors or self._build())

    def items(self) -> ItemsView[str, Tensor]:
        """See Mapping."""
        return (self._tensors or self._build()).items()

    def values(self) -> ValuesView[Tensor]:
        """See Mapping."""
        return (self._tensors or self._build()).values()

    def _build(self) -> dict[str, Tensor]:
        tensors = {}
        content = self.content
        for name, datatype, shape, dtype, start, size in self.layout.fields:
            start += self.start
            if start & (dtype.alignment - 1):  # frameworks may not read them there
                array = _ndarray(shape, dtype, content[start : start + size])
            else:
                array = _ndarray(shape, dtype, content, start)
            tensors[name] = Tensor(name, datatype, shape, array)
        self._tensors = tensors
        return tensors


def join_rows(name: str, inputs: Sequence[Mapping[str, Tensor]]) -> np.ndarray:
    """That input of several requests along dimension 0, in new memory."""
    joined = _join_bytes(name, inputs)
    if joined is not None:
        return joined
    tensors = [each[name] for each in inputs]
    return np.concatenate([each.payload if type(each.payload) is _ndarray else each.array for each in tensors])


def _join_bytes(name: str, inputs: Sequence[Mapping[str, Tensor]]) -> np.ndarray | None:
    """As `join_rows`, without making tensors; None unless the input is small and all have one layout."""
    first = inputs[0]
    field = first.layout.small.get(name) if type(first) is LaidOutInputs else None
    if field is None:
        return None
    layout, begin, end = first.layout, field.start, field.start + field.size  # type: ignore[attr-defined]
    parts = [
        each.content[each.start + begin : each.start + end]
        for each in inputs
        if type(each) is LaidOutInputs and each.layout is layout
    ]
    if len(parts) < len(inputs):
        return None
    shape = field.shape
    return _ndarray((len(parts) * shape[0], *shape[1:]), field.dtype, bytearray().join(parts))
