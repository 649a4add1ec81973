"""The bytes of messages: values and groups of tensors, in a fixed form that both processes know; nothing is pickled.

A body is a sequence of items, each of which fills a multiple of 16 bytes. A group of tensors begins with a head that
says their names, datatypes and shapes, and has a label: whatever else is the same in all messages of a kind. The head
is followed by the number of rows, and each row has a payload for each tensor: small tensors of the same form, such as
those of most requests of a batch, need one head for all. The payload of a small tensor stands in the message, that of a
larger one in a block of an arena.
"""

import struct
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from naiad_process_workers.arenas import ReadArenas
from naiad_process_workers.connection import Connection
from naiad_process_workers.frames import LinkBrokenError
from naiad_process_workers.groups import (
    ITEM,
    LENGTH,
    PADS,
    SMALLEST_BLOCK,
    Form,
    Group,
    GroupTensor,
    Label,
    form_of,
    group_of,
    output_form_of,
    row_form_of,
)
from naiad_process_workers.values import packed, unpacked
from naiad_tensors.datatypes import TENSOR_TYPES
from naiad_tensors.laid_out import LaidOutArrays, LaidOutInputs
from naiad_tensors.tensors import Tensor, bytes_array, host_array

_LOCATION = struct.Struct("<QQQ8x")
_NUMBER = struct.Struct("<Q8x")
_ONE = _NUMBER.pack(1)


class TakenBlocks:
    """The blocks that a message has taken in arenas, by arena, offset and size; those that are not sent go back."""

    __slots__ = ("_connection", "blocks")

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self.blocks: list[tuple[int, int, int]] = []

    def __del__(self) -> None:
        if self.blocks:
            self._connection.unused(self.blocks)


class Encoder:
    """Makes the body of one message for a connection; `string_bytes` are those of strings in it.

    `kept` are arrays that must live until the body is sent. An encoder that is dropped before `body` was called,
    because writing raised an error, gives its blocks back.
    """

    __slots__ = ("_connection", "_count_at", "_form", "_parts", "_row_end", "_rows", "_taken", "kept", "string_bytes")

    def __init__(self, connection: Connection) -> None:
        self.string_bytes = 0
        self.kept: Sequence[np.ndarray] = ()
        self._connection = connection
        self._parts: list[bytes] = []
        self._taken: TakenBlocks | None = None
        self._row_end = -1  # the end of the latest row, if another of its form may follow there
        self._rows = self._count_at = 0
        self._form: Form | None = None

    def numbers(self, form: struct.Struct, *values: Any) -> None:
        """Numbers of a form that fills items."""
        self._parts.append(form.pack(*values))

    def value(self, value: Any) -> None:
        """A plain value: see `values`. Raises TypeError for others."""
        content = packed(value)
        self._parts.append(LENGTH.pack(len(content)) + content + PADS[-(4 + len(content)) % ITEM])

    def tensors(self, label: Label, tensors: Mapping[str, Tensor]) -> None:
        """A group of tensors in host memory."""
        if type(tensors) is LaidOutInputs and tensors.layout.fields:
            form, spans = row_form_of(label, tensors.layout)
            if spans:
                self._begin_row(form)
                content, start = tensors.content, tensors.start
                self._parts += [bytes(content[start + begin : start + end]) + pad for begin, end, pad in spans]
                self._row_end = len(self._parts)
                return
        key: list[Any] = [label]
        arrays = []
        for name, tensor in tensors.items():
            array = tensor.payload
            if type(array) is not np.ndarray:
                array = tensor.array
            arrays.append(array)
            key += (name, tensor.datatype, array.shape)
        self._put(form_of(tuple(key)), arrays)

    def outputs(self, label: Label, outputs: Mapping[str, Any]) -> None:
        """A group of what a model gave: arrays, or anything with `__dlpack__`. Raises NaiadError."""
        arrays = list(map(host_array, outputs.values()))
        self._put(output_form_of(label, outputs, arrays), arrays)

    def body(self) -> bytes:
        """The whole body."""
        self._count_rows()
        body = b"".join(self._parts)
        if self._taken is not None:
            self._taken.blocks = []
        return body

    def _count_rows(self) -> None:
        """Write how many rows the latest group has, if there are several."""
        if self._rows > 1:
            self._parts[self._count_at] = _NUMBER.pack(self._rows)

    def _begin_row(self, form: Form) -> None:
        """A further row, or the first one of a group."""
        parts = self._parts
        if form is self._form and self._row_end == len(parts):
            self._rows += 1
        else:
            self._count_rows()
            self._form = form
            self._rows, self._count_at = 1, len(parts) + 1
            parts += (form.head, _ONE)

    def _put(self, form: Form, arrays: list[np.ndarray]) -> None:
        parts = self._parts
        self._begin_row(form)
        if form.row_pads:
            parts += [array.tobytes() + pad for array, pad in zip(arrays, form.row_pads, strict=True)]
            self._row_end = len(parts)
            return
        self._row_end = -1
        for array, pad, datatype in zip(arrays, form.pads, form.datatypes, strict=True):
            if pad is None:
                self._put_other(array, datatype)
            else:
                parts += (array.tobytes(), pad)

    def _put_other(self, array: np.ndarray, datatype: str) -> None:
        """A payload that is large, or not as it is sent."""
        if datatype == "BYTES":
            self._put_strings(bytes_array(array).ravel().tolist())
            return
        dtype = TENSOR_TYPES[datatype].dtype
        if array.dtype != dtype:
            array = array.view(dtype) if datatype == "BF16" else array.astype(dtype)
        if array.nbytes < SMALLEST_BLOCK:
            self._parts += (array.tobytes(), PADS[-array.nbytes % ITEM])
            return
        if array.flags.c_contiguous and array.flags.aligned:
            location = self._connection.lend(array)
            if location is not None:
                self.kept = (*self.kept, array)
                if self._connection.memory.bodies is not None:
                    self._take(*location, array.nbytes)
                self._parts.append(_LOCATION.pack(*location, array.nbytes))
                return
        target = self._block(array.nbytes)
        np.copyto(target.view(dtype).reshape(array.shape), array)

    def _put_strings(self, elements: list[bytes]) -> None:
        payload = b"".join([part for each in elements for part in (LENGTH.pack(len(each)), each)])
        size = len(payload)
        self.string_bytes += size
        self._parts.append(_NUMBER.pack(size))
        if size < SMALLEST_BLOCK:
            self._parts += (payload, PADS[-size % ITEM])
        else:
            self._block(size)[:] = np.frombuffer(payload, np.uint8)

    def _block(self, size: int) -> np.ndarray:
        """The bytes of a new block, whose location is written."""
        connection = self._connection
        arena, offset = connection.memory.own.allocate(size, connection, connection.announce)
        self._take(arena.number, offset, size)
        self._parts.append(_LOCATION.pack(arena.number, offset, size))
        return arena.bytes[offset : offset + size]

    def _take(self, arena: int, offset: int, size: int) -> None:
        if self._taken is None:
            self._taken = TakenBlocks(self._connection)
        self._taken.blocks.append((arena, offset, size))


class Decoder:
    """Reads the body of one message. Every method raises LinkBrokenError for what cannot be read."""

    __slots__ = ("_arenas", "_at", "_body")

    def __init__(self, body: bytes, arenas: ReadArenas) -> None:
        self._body = body
        self._arenas = arenas
        self._at = 0

    def numbers(self, form: struct.Struct) -> tuple[Any, ...]:
        """Numbers of that form."""
        at = self._at
        self._at = at + form.size
        try:
            return form.unpack_from(self._body, at)
        except struct.error as error:
            raise LinkBrokenError("a message is too short") from error

    def value(self) -> Any:
        """A value; mappings are dicts, sequences lists."""
        at = self._at
        length = int.from_bytes(self._body[at : at + 4], "little")
        content = self._body[at + 4 : at + 4 + length]
        if not content or len(content) < length:
            raise LinkBrokenError("a message is too short")
        self._at = at + 4 + length + -(4 + length) % ITEM
        return unpacked(content)

    def tensors(self) -> tuple[Label, Mapping[str, Tensor]]:
        """The label and the tensors of a group of one row."""
        label, (tensors,) = self.tensor_rows(1)
        return label, tensors

    def tensor_rows(self, most: int) -> tuple[Label, Sequence[Mapping[str, Tensor]]]:
        """The label and the tensors of a group of 1 to `most` rows; the arrays are views on the body or on a block."""
        group, rows = self._rows(most)
        layout = group.layout
        if layout is not None:
            return group.label, [LaidOutArrays(layout, arrays) for arrays in rows]
        (arrays,) = rows
        pairs = zip(group.tensors, arrays, strict=True)
        return group.label, [{each.name: Tensor(each.name, each.datatype, each.shape, array) for each, array in pairs}]

    def output_rows(self, most: int) -> tuple[Label, list[dict[str, np.ndarray]]]:
        """The label and the arrays of a group of 1 to `most` rows, as `tensor_rows`."""
        group, rows = self._rows(most)
        names = group.names
        return group.label, [dict(zip(names, arrays, strict=True)) for arrays in rows]

    def joined_outputs(self, label: Label, count: int) -> dict[str, np.ndarray] | None:
        """Outputs of one row each in a group of that label and number of rows, joined; None if another group follows.

        That one is not read then.
        """
        at = self._at
        group, rows = self._group()
        if rows != count or group.label != label or group.row < 0 or any(each.shape[0] != 1 for each in group.tensors):
            self._at = at
            return None
        columns = self._columns(group, rows)
        return {each.name: column[:, 0] for each, column in zip(group.tensors, columns, strict=True)}

    def _rows(self, most: int) -> tuple[Group, Iterable[Sequence[np.ndarray]]]:
        group, count = self._group()
        try:
            if count == 1:
                return group, (self._row(group),)
        except (TypeError, ValueError, OverflowError) as error:
            raise _cut_off() from error
        if not 1 <= count <= most or group.row < 0:
            raise LinkBrokenError(f"a group of tensors claims {count} rows")
        return group, zip(*self._columns(group, count), strict=True)

    def _group(self) -> tuple[Group, int]:
        """What the head of a group says, and how many rows follow."""
        body, at = self._body, self._at
        head = body[at : at + int.from_bytes(body[at : at + 4], "little")]
        group = group_of(head)
        self._at = at + len(head)
        return group, self.numbers(_NUMBER)[0]

    def _row(self, group: Group) -> list[np.ndarray]:
        """The arrays of a single row."""
        body, at = self._body, self._at
        arrays = []
        for each in group.tensors:
            if each.step >= 0:
                arrays.append(np.ndarray(each.shape, each.dtype, body, at))
                at += each.step
            else:
                self._at = at
                arrays.append(self._other(each))
                at = self._at
        self._at = at
        return arrays

    def _columns(self, group: Group, count: int) -> list[np.ndarray]:
        """An array over all rows for each tensor; where this process may write to what it reads, a copy of them."""
        at, row = self._at, group.row
        self._at = at + count * row
        columns = []
        try:
            for each in group.tensors:
                column = np.ndarray((count, *each.shape), each.dtype, self._body, at, (row, *each.strides))
                columns.append(column.copy() if self._arenas.writable else column)
                at += each.step
        except (TypeError, ValueError, OverflowError) as error:
            raise _cut_off() from error
        return columns

    def _other(self, tensor: GroupTensor) -> np.ndarray:
        if tensor.datatype != "BYTES":
            return self._block(tensor.size, tensor.dtype, tensor.shape)
        (size,) = self.numbers(_NUMBER)
        if size >= SMALLEST_BLOCK:
            content = self._block(size, np.dtype(np.uint8), (size,)).tobytes()
        else:
            content = self._body[self._at : self._at + size]
            self._at += size + -size % ITEM
        return _strings(tensor.name, content, tensor.shape)

    def _block(self, size: int, dtype: np.dtype, shape: tuple[int, ...]) -> np.ndarray:
        number, offset, claimed = self.numbers(_LOCATION)
        if claimed != size:
            raise LinkBrokenError(f"a tensor has {claimed} bytes, not {size}")
        return self._arenas.array(number, offset, size, dtype, shape)


def _cut_off() -> LinkBrokenError:
    return LinkBrokenError("a tensor is not all there")


def _strings(name: str, content: bytes, shape: tuple[int, ...]) -> np.ndarray:
    elements: list[bytes] = []
    at, end = 0, len(content)
    while at + 4 <= end:
        stop = at + 4 + int.from_bytes(content[at : at + 4], "little")
        elements.append(content[at + 4 : stop])
        at = stop
    if at != end or len(elements) != np.prod(shape, dtype=object):
        raise LinkBrokenError(f"the strings of tensor '{name}' do not fill its shape {list(shape)}")
    array = np.empty(len(elements), dtype=object)
    array[:] = elements
    return array.reshape(shape)
