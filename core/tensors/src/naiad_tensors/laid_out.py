"""Inputs that are still the bytes of their request, and others that are arrays; a tensor is made at the first access.

Requests that a client repeats have their inputs at the same offsets, and the answers of a model have outputs of the
same names, datatypes and shapes. A layout says this once for all of them. A batch joins the bytes of its requests, and
a frontend writes arrays into a response, so most tensors are never made.
"""

from abc import abstractmethod
from collections.abc import Hashable, ItemsView, Iterator, Mapping, Sequence, ValuesView
from math import prod
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
    """Where the inputs of many requests are in their bytes; `nbytes` is the sum of their sizes.

    `checked` is the DeclaredInputs that has checked a request of this layout, and its result, which holds for all.
    """

    __slots__ = ("checked", "fields", "nbytes", "small")

    def __init__(self, fields: Sequence[Field] = ()) -> None:
        self.checked: tuple[object, tuple[int, Hashable]] = None, (0, None)
        self.fields = tuple(fields)
        self.nbytes = sum(each.size for each in fields)
        self.small = {each.name: each for each in fields if each.shape and each.size <= FEW_BYTES}


class _LaidOut(Mapping[str, Tensor]):
    """A mapping whose tensors are made at the first access."""

    __slots__ = ("_tensors",)

    _tensors: dict[str, Tensor] | None

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

    @abstractmethod
    def _build(self) -> dict[str, Tensor]:
        """Make the tensors, and keep them."""


class LaidOutInputs(_LaidOut):
    """Inputs in the received bytes `content`; the offsets of the `layout` count from `start`.

    The arrays are read-only where the bytes are. Strings and booleans must be decoded from their bytes: a request with
    some comes with its `tensors`. The bytes of large inputs are kept by their arrays alone once these are made, so that
    a model which answers with such an array is known to be its only owner.
    """

    __slots__ = ("content", "layout", "start")

    def __init__(
        self,
        layout: InputLayout,
        content: bytes | bytearray | memoryview,
        start: int = 0,
        tensors: dict[str, Tensor] | None = None,
    ) -> None:
        self.layout = layout
        self.content = content if tensors is None or layout.nbytes <= FEW_BYTES else b""
        self.start = start
        self._tensors = tensors

    @property
    def is_small(self) -> bool:
        """Whether nobody has asked for a tensor yet, and a copy of all of them costs little."""
        return self._tensors is None and self.layout.nbytes <= FEW_BYTES

    def _build(self) -> dict[str, Tensor]:
        content = self.content
        if self._tensors:  # another thread was first, so that `content` may be gone: it goes after they are kept
            return self._tensors
        tensors = {}
        for name, datatype, shape, dtype, start, size in self.layout.fields:
            start += self.start
            array = _ndarray(shape, dtype, content, start)
            if not array.flags.aligned:  # frameworks may not read them there
                array = _ndarray(shape, dtype, bytes(content[start : start + size]))
            tensors[name] = Tensor(name, datatype, shape, array)
        self._tensors = tensors
        if self.layout.nbytes > FEW_BYTES:
            self.content = b""
        return tensors


class ArrayLayout:
    """What the outputs of many answers have in common, or the inputs of many requests; all are numbers.

    `sizes` are in bytes, `nbytes` is their sum; `is_small`: a copy of each costs little.
    """

    __slots__ = ("datatypes", "dtypes", "is_small", "names", "nbytes", "shapes", "sizes")

    def __init__(self, fields: Sequence[tuple[str, str, np.dtype, tuple[int, ...]]]) -> None:
        """`fields` has the name, datatype, dtype and shape of each tensor, in order."""
        self.names = tuple(name for name, *_ in fields)
        self.datatypes = tuple(datatype for _, datatype, *_ in fields)
        self.dtypes = tuple(dtype for *_, dtype, _ in fields)
        self.shapes = tuple(shape for *_, shape in fields)
        self.sizes = tuple(dtype.itemsize * prod(shape) for _, _, dtype, shape in fields)
        self.nbytes = sum(self.sizes)
        self.is_small = all(size <= FEW_BYTES for size in self.sizes)


class LaidOutArrays(_LaidOut):
    """Tensors in host memory: one array for each of the `layout`, of its dtype and shape."""

    __slots__ = ("arrays", "layout")

    def __init__(self, layout: ArrayLayout, arrays: Sequence[np.ndarray]) -> None:
        self.layout = layout
        self.arrays = arrays
        self._tensors = None

    def __len__(self) -> int:
        return len(self.layout.names)

    def _build(self) -> dict[str, Tensor]:
        layout = self.layout
        parts = zip(layout.names, layout.datatypes, layout.shapes, self.arrays, strict=True)
        tensors = self._tensors = {part[0]: Tensor(*part) for part in parts}
        return tensors


def join_rows(name: str, inputs: Sequence[Mapping[str, Tensor]]) -> np.ndarray:
    """That input of several requests along dimension 0, in new memory."""
    joined = _join_bytes(name, inputs)
    if joined is not None:
        return joined
    first = inputs[0]
    if type(first) is LaidOutArrays and name in first.layout.names:
        layout, index = first.layout, first.layout.names.index(name)
        arrays = [each.arrays[index] for each in inputs if type(each) is LaidOutArrays and each.layout is layout]
        if len(arrays) == len(inputs):
            return np.concatenate(arrays)
    tensors = [each[name] for each in inputs]
    return np.concatenate([each.payload if type(each.payload) is _ndarray else each.array for each in tensors])


def _join_bytes(name: str, inputs: Sequence[Mapping[str, Tensor]]) -> np.ndarray | None:
    """As `join_rows`, without making tensors; None unless the input is small and all have one layout."""
    first = inputs[0]
    if type(first) is not LaidOutInputs:
        return None
    layout = first.layout
    field = layout.small.get(name)
    if field is None:
        return None
    begin, end = field.start, field.start + field.size
    parts = [
        each.content[each.start + begin : each.start + end]
        for each in inputs
        if type(each) is LaidOutInputs and each.layout is layout and len(each.content)
    ]
    if len(parts) < len(inputs):
        return None
    shape = field.shape
    return _ndarray((len(parts) * shape[0], *shape[1:]), field.dtype, bytearray().join(parts))
