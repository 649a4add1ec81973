"""Declared outputs of a library model, and checks of the memory that a library asks for."""

import ctypes
from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

import numpy as np

from naiad.errors import InvalidArgumentError, ModelFailedError
from naiad.types import Request
from naiad_config import DataType, ModelConfig
from naiad_custom.shared_library.abi import text_of
from naiad_custom.shared_library.guarded import GuardedMemory
from naiad_kit.backends.interface import shape_text
from naiad_kit.buffers import unpack_strings
from naiad_tensors.datatypes import tensor_type, wire_name

_MOST_DIMS = 32
_DIMS = tuple(ctypes.c_int64 * count for count in range(_MOST_DIMS + 1))


@dataclass(frozen=True, slots=True)
class Declared:
    """One output: its dims as the model sees them, without the batch dimension, which it has where it `has_rows`.

    `wire` is its `datatype` as a library writes it.
    """

    name: str
    datatype: str
    wire: bytes
    dtype: np.dtype
    itemsize: int
    dims: tuple[int, ...]
    has_rows: bool

    def shape(self, rows: int) -> tuple[int, ...]:
        """The shape that so many rows have, -1 for what may vary."""
        return (rows, *self.dims) if self.has_rows else self.dims

    def objection(self, datatype: bytes | None, shape: tuple[int, ...] | None, byte_size: int, rows: int) -> str:
        """What is wrong with asking for that, "" when nothing is; `shape` is None where none was given."""
        declared = self.shape(rows)
        if datatype == self.wire and shape == declared and byte_size == self.itemsize * prod(shape) and self.itemsize:
            return ""  # nearly always, and before the questions in detail
        if datatype is None:
            return "its datatype is NULL"
        if datatype != self.wire:
            return f"its datatype is {text_of(datatype)}, and the configuration declares {self.datatype}"
        if shape is None:
            return f"its dims are NULL or too many, and the configuration asks for {shape_text(declared)}"
        if len(shape) != len(declared) or any(
            size < 0 or dim not in (-1, size) for size, dim in zip(shape, declared, strict=True)
        ):
            batch = f" and {rows} rows ask" if self.has_rows else " asks"
            return f"its shape is {shape_text(shape)}, and the configuration{batch} for {shape_text(declared)}"
        count = prod(shape)
        if self.itemsize and byte_size != count * self.itemsize:
            return (
                f"{byte_size} bytes are asked for, and {self.datatype}{shape_text(shape)} takes {count * self.itemsize}"
            )
        if not self.itemsize and byte_size < 4 * count:
            return f"{byte_size} bytes are asked for, and {count} strings take 4 bytes each for their lengths alone"
        return ""

    def array(self, shape: tuple[int, ...], content: GuardedMemory) -> np.ndarray:
        """The array in that memory. Raises ModelFailedError where it holds no strings and should."""
        if self.itemsize:
            return np.ndarray(shape, self.dtype, content.memory, content.start)
        held = memoryview(content.memory)[content.start : content.start + content.size]
        try:
            return unpack_strings(held, prod(shape), self.name, "").reshape(shape)
        except InvalidArgumentError as error:
            raise ModelFailedError(
                f"its {content.size} bytes are not {prod(shape)} strings, each behind its length (32 bits, "
                "little-endian)"
            ) from error


class Outputs:
    """All outputs of a model, the states of sequences included, which a library may leave out and no client asks for.

    `by_name` has names as a library gives them.
    """

    def __init__(self, config: ModelConfig) -> None:
        has_rows = config.max_batch_size > 0
        states = config.sequence_batching.state if config.sequence_batching is not None else ()
        self.model = config.name
        self.names = tuple(each.name for each in config.output)
        self.states = tuple(each.output_name for each in states if each.output_name not in self.names)
        declared = [_declared(each.output_name, each.data_type, tuple(each.dims), has_rows) for each in states]
        for each in config.output:
            dims = each.dims if each.reshape is None else each.reshape.shape
            declared.append(_declared(each.name, each.data_type, tuple(dims), has_rows))
        self.by_name = {each.name.encode(): each for each in declared}

    def required(self, request: Request) -> Sequence[str]:
        """The outputs that an answer to that request must have."""
        return request.requested or self.names

    def requested(self, request: Request) -> Sequence[str]:
        """The outputs that are worth computing for it."""
        return (*self.required(request), *self.states) if self.states else self.required(request)


def read_dims(address: int | None, count: int) -> tuple[int, ...] | None:
    """The `count` dims at that address; None where there are none to read, or unbelievably many."""
    if count > _MOST_DIMS or (address is None and count):
        return None
    return tuple(_DIMS[count].from_address(address)) if address is not None else ()


def _declared(name: str, data_type: DataType, dims: tuple[int, ...], has_rows: bool) -> Declared:
    kind = tensor_type(wire_name(data_type))
    return Declared(name, kind.wire, kind.wire.encode(), kind.dtype, kind.itemsize, dims, has_rows)
