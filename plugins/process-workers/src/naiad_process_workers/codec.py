"""The bytes of messages: values and groups of tensors, in a fixed form that both processes know; nothing is pickled.

A body is a sequence of items, each of which fills a multiple of 16 bytes. A group of tensors begins with a head that
says their names, datatypes and shapes, and has a label: whatever else is the same in all messages of a kind. Both
processes keep the heads that they have seen, so that a group takes one look-up to write and one to read. The payload of
a small tensor stands in the message, that of a larger one in a block of an arena.
"""

import struct
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from naiad.errors import InvalidArgumentError
from naiad_process_workers.arenas import ReadArenas
from naiad_process_workers.connection import Connection
from naiad_process_workers.frames import LinkBrokenError
from naiad_process_workers.values import packed, unpacked
from naiad_tensors.datatypes import TENSOR_TYPES, wire_name_of
from naiad_tensors.tensors import Tensor, bytes_array, host_array

SMALLEST_BLOCK = 4 << 10
"""A payload of so many bytes goes into an arena; a smaller one into the message."""

Label = tuple[Any, ...]
"""Plain values, and tuples of such."""

_ITEM = 16
_PADS = tuple(b"\0" * size for size in range(_ITEM))
_LENGTH = struct.Struct("<I")
_LOCATION = struct.Struct("<QQQ8x")
_NUMBER = struct.Struct("<Q8x")
_MOST_HEADS = 4096


class _Tensor(NamedTuple):
    """One tensor of a group. `step` is how far its payload reaches in the message, -1 if that is not known."""

    name: str
    datatype: str
    dtype: np.dtype
    shape: tuple[int, ...]
    size: int
    step: int


class _Group(NamedTuple):
    """What a head says."""

    label: Label
    tensors: tuple[_Tensor, ...]


class _Form(NamedTuple):
    """How a group is written: its head, and for each tensor the padding, None where it is not simply its bytes."""

    head: bytes
    pads: tuple[bytes | None, ...]
    datatypes: tuple[str, ...]


_forms: dict[tuple[Any, ...], _Form] = {}
_groups: dict[bytes, _Group] = {}


class Encoder:
    """Makes the body of one message for a connection; `string_bytes` are those of strings in it.

    `kept` are arrays that must live until the body is sent.
    """

    __slots__ = ("_connection", "_parts", "kept", "string_bytes")

    def __init__(self, connection: Connection) -> None:
        self.string_bytes = 0
        self.kept: Sequence[np.ndarray] = ()
        self._connection = connection
        self._parts: list[bytes] = []

    def numbers(self, form: struct.Struct, *values: Any) -> None:
        """Numbers of a form that fills items."""
        self._parts.append(form.pack(*values))

    def value(self, value: Any) -> None:
        """A plain value: see `values`. Raises TypeError for others."""
        content = packed(value)
        self._parts.append(_LENGTH.pack(len(content)) + content + _PADS[-(4 + len(content)) % _ITEM])

    def tensors(self, label: Label, tensors: Mapping[str, Tensor]) -> None:
        """A group of tensors in host memory."""
        key: list[Any] = [label]
        arrays = []
        for name, tensor in tensors.items():
            array = tensor.payload
            if type(array) is not np.ndarray:
                array = tensor.array
            arrays.append(array)
            key += (name, tensor.datatype, array.shape)
        self._put(tuple(key), arrays)

    def outputs(self, label: Label, outputs: Mapping[str, Any]) -> None:
        """A group of what a model gave: arrays, or anything with `__dlpack__`. Raises NaiadError."""
        key: list[Any] = [label]
        arrays = []
        for name, value in outputs.items():
            array = value if type(value) is np.ndarray else host_array(value)
            arrays.append(array)
            key += (name, array.dtype, array.shape)
        self._put(tuple(key), arrays)

    def body(self) -> bytes:
        """The whole body."""
        return b"".join(self._parts)

    def _put(self, key: tuple[Any, ...], arrays: list[np.ndarray]) -> None:
        form = _forms.get(key)
        if form is None:
            form = _form(key)
        parts = self._parts
        parts.append(form.head)
        for index, pad in enumerate(form.pads):
            if pad is None:
                self._put_other(arrays[index], form.datatypes[index])
            else:
                parts.append(arrays[index].tobytes())
                if pad:
                    parts.append(pad)

    def _put_other(self, array: np.ndarray, datatype: str) -> None:
        """A payload that is large, or not as it is sent."""
        if datatype == "BYTES":
            self._put_strings(bytes_array(array).ravel().tolist())
            return
        dtype = TENSOR_TYPES[datatype].dtype
        if array.dtype != dtype:
            array = array.view(dtype) if datatype == "BF16" else array.astype(dtype)
        if array.nbytes < SMALLEST_BLOCK:
            self._parts += (array.tobytes(), _PADS[-array.nbytes % _ITEM])
            return
        if array.flags.c_contiguous and array.flags.aligned:
            location = self._connection.lend(array)
            if location is not None:
                self.kept = (*self.kept, array)
                self._parts.append(_LOCATION.pack(*location, array.nbytes))
                return
        target = self._block(array.nbytes)
        np.copyto(target.view(dtype).reshape(array.shape), array)

    def _put_strings(self, elements: list[bytes]) -> None:
        payload = b"".join([part for each in elements for part in (_LENGTH.pack(len(each)), each)])
        size = len(payload)
        self.string_bytes += size
        self._parts.append(_NUMBER.pack(size))
        if size < SMALLEST_BLOCK:
            self._parts += (payload, _PADS[-size % _ITEM])
        else:
            self._block(size)[:] = np.frombuffer(payload, np.uint8)

    def _block(self, size: int) -> np.ndarray:
        """The bytes of a new block, whose location is written."""
        connection = self._connection
        arena, offset = connection.memory.own.allocate(size, connection, connection.announce)
        self._parts.append(_LOCATION.pack(arena.number, offset, size))
        return arena.bytes[offset : offset + size]


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
        self._at = at + 4 + length + -(4 + length) % _ITEM
        return unpacked(content)

    def tensors(self) -> tuple[Label, dict[str, Tensor]]:
        """The label and the tensors of a group; the arrays are read-only views on the body or on a block."""
        group, arrays = self._arrays()
        tensors = {}
        for each, array in zip(group.tensors, arrays, strict=True):
            name = each.name
            tensors[name] = Tensor(name, each.datatype, each.shape, array)
        return group.label, tensors

    def outputs(self) -> tuple[Label, dict[str, np.ndarray]]:
        """The label and the arrays of a group."""
        group, arrays = self._arrays()
        return group.label, {each.name: array for each, array in zip(group.tensors, arrays, strict=True)}

    def _arrays(self) -> tuple[_Group, list[np.ndarray]]:
        body, at = self._body, self._at
        head = body[at : at + int.from_bytes(body[at : at + 4], "little")]
        group = _groups.get(head)
        if group is None:
            group = _group(head)
        at += len(head)
        arrays = []
        try:
            for each in group.tensors:
                step = each.step
                if step >= 0:
                    arrays.append(np.ndarray(each.shape, each.dtype, body, at))
                    at += step
                else:
                    self._at = at
                    arrays.append(self._other(each))
                    at = self._at
        except (TypeError, ValueError, OverflowError) as error:
            raise LinkBrokenError("a tensor is not all there") from error
        self._at = at
        return group, arrays

    def _other(self, tensor: _Tensor) -> np.ndarray:
        if tensor.datatype != "BYTES":
            return self._block(tensor.size, tensor.dtype, tensor.shape)
        (size,) = self.numbers(_NUMBER)
        if size >= SMALLEST_BLOCK:
            content = self._block(size, np.dtype(np.uint8), (size,)).tobytes()
        else:
            content = self._body[self._at : self._at + size]
            self._at += size + -size % _ITEM
        return _strings(tensor.name, content, tensor.shape)

    def _block(self, size: int, dtype: np.dtype, shape: tuple[int, ...]) -> np.ndarray:
        number, offset, claimed = self.numbers(_LOCATION)
        if claimed != size:
            raise LinkBrokenError(f"a tensor has {claimed} bytes, not {size}")
        return self._arenas.array(number, offset, size, dtype, shape)


def _form(key: tuple[Any, ...]) -> _Form:
    """How the tensors of that key are written: a label, and the name, datatype or dtype, and shape of each.

    Raises InvalidArgumentError for a dtype without a datatype.
    """
    label = packed(key[0])
    parts, pads, datatypes = [_LENGTH.pack(len(label)), label], [], []
    for name, kind, shape in zip(key[1::3], key[2::3], key[3::3], strict=True):
        datatype = kind if isinstance(kind, str) else _wire_name(name, kind)
        tensor_type = TENSOR_TYPES[datatype]
        content = packed((str(name), datatype, shape))
        parts += (_LENGTH.pack(len(content)), content)
        size = tensor_type.itemsize * int(np.prod(shape, dtype=object))
        plain = tensor_type.itemsize and size < SMALLEST_BLOCK and (kind is datatype or kind == tensor_type.dtype)
        pads.append(_PADS[-size % _ITEM] if plain else None)
        datatypes.append(datatype)
    content = b"".join(parts)
    padding = -(8 + len(content)) % _ITEM
    head = struct.pack("<II", 8 + len(content) + padding, len(datatypes)) + content + _PADS[padding]
    if len(_forms) >= _MOST_HEADS:
        _forms.clear()
    form = _forms[key] = _Form(head, tuple(pads), tuple(datatypes))
    return form


def _wire_name(name: str, dtype: np.dtype) -> str:
    try:
        return wire_name_of(dtype)
    except InvalidArgumentError as error:
        raise InvalidArgumentError(f"output '{name}': {error}") from error


def _group(head: bytes) -> _Group:
    """What a head says. Raises LinkBrokenError."""
    try:
        _, count = struct.unpack_from("<II", head)
        at, values = 8, []
        for _ in range(1 + count):
            (length,) = _LENGTH.unpack_from(head, at)
            values.append(unpacked(head[at + 4 : at + 4 + length]))
            at += 4 + length
        label = tuple(tuple(each) if isinstance(each, list) else each for each in values[0])
        group = _Group(label, tuple(_tensor(*each) for each in values[1:]))
    except (struct.error, KeyError, TypeError, ValueError) as error:
        raise LinkBrokenError(f"a group of tensors cannot be read: {error}") from error
    if len(_groups) >= _MOST_HEADS:
        _groups.clear()
    _groups[head] = group
    return group


def _tensor(name: str, datatype: str, dims: list[int]) -> _Tensor:
    kind, shape = TENSOR_TYPES[datatype], tuple(dims)
    if not isinstance(name, str) or any(not isinstance(dim, int) or dim < 0 for dim in shape):
        raise ValueError(f"tensor '{name}' of shape {shape}")
    size = kind.itemsize * int(np.prod(shape, dtype=object))
    inline = kind.itemsize and size < SMALLEST_BLOCK
    return _Tensor(name, datatype, kind.dtype, shape, size, size + -size % _ITEM if inline else -1)


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
