"""The bytes of messages: values and tensors, in a fixed form that both processes know; nothing is pickled.

A body is the length of its first part, that part (values, and what tensors there are), and the payloads of small
tensors, each at a multiple of 16 bytes. The payload of a larger tensor is a block of an arena.
"""

import struct
from collections.abc import Mapping
from typing import Any

import numpy as np

from naiad_process_workers.arenas import ReadArenas
from naiad_process_workers.connection import Connection
from naiad_process_workers.frames import LinkBrokenError
from naiad_tensors.datatypes import TENSOR_TYPES, wire_name_of
from naiad_tensors.tensors import Tensor, bytes_array, host_array

SMALLEST_BLOCK = 4 << 10
"""A payload of so many bytes goes into an arena; a smaller one into the message."""

_LENGTH = struct.Struct("<I")
_INT = struct.Struct("<q")
_UINT = struct.Struct("<Q")
_FLOAT = struct.Struct("<d")
_LOCATION = struct.Struct("<BIQQ")
_DIMS = struct.Struct("<HHB")
_PADDING = b"\0" * 15
_MOST_HEADS = 4096

_heads: dict[tuple[str, str, tuple[int, ...]], bytes] = {}
_kinds: dict[bytes, tuple[str, str, np.dtype, tuple[int, ...], int]] = {}


class Encoder:
    """Makes the body of one message for a connection; `string_bytes` are those of strings in it."""

    def __init__(self, connection: Connection) -> None:
        self.string_bytes = 0
        self._connection = connection
        self._parts: list[bytes] = []
        self._payloads: list[bytes | memoryview] = []
        self._size = 0

    def raw(self, content: bytes) -> None:
        """Bytes of a length that the reader knows."""
        self._parts.append(content)

    def value(self, value: Any) -> None:
        """None, a bool, number, text, bytes, or a list, tuple or mapping of such. Raises TypeError for others."""
        parts = self._parts
        if value is None:
            parts.append(b"n")
        elif value is True or value is False:
            parts.append(b"t" if value else b"f")
        elif isinstance(value, str):
            text = value.encode("utf-8", "surrogatepass")
            parts.append(b"s" + _LENGTH.pack(len(text)) + text)
        elif isinstance(value, int):
            parts.append(b"i" + _INT.pack(value) if -(2**63) <= value < 2**63 else b"u" + _UINT.pack(value))
        elif isinstance(value, float):
            parts.append(b"d" + _FLOAT.pack(value))
        elif isinstance(value, bytes | bytearray | memoryview):
            parts.append(b"b" + _LENGTH.pack(len(value)) + bytes(value))
        elif isinstance(value, Mapping):
            parts.append(b"m" + _LENGTH.pack(len(value)))
            for key, each in value.items():
                self.value(key)
                self.value(each)
        elif isinstance(value, list | tuple):
            parts.append(b"l" + _LENGTH.pack(len(value)))
            for each in value:
                self.value(each)
        elif isinstance(value, np.generic):
            self.value(value.item())
        else:
            raise TypeError(f"a {type(value).__name__} cannot be sent to another process")

    def tensor(self, name: str, datatype: str, array: np.ndarray) -> None:
        """A tensor in host memory; BYTES as an object array of `bytes`."""
        shape = array.shape
        head = _heads.get((name, datatype, shape))
        if head is None:
            head = _head(name, datatype, shape)
        payload: Any = array
        if datatype == "BYTES":
            elements = array.ravel().tolist()
            payload = b"".join([part for each in elements for part in (_LENGTH.pack(len(each)), each)])
            size = len(payload)
            self.string_bytes += size
        else:
            size = array.nbytes
        if size >= SMALLEST_BLOCK:
            connection = self._connection
            arena, offset = connection.memory.own.allocate(size, connection, connection.announce)
            target = arena.bytes[offset : offset + size]
            if datatype == "BYTES":
                target[:] = np.frombuffer(payload, np.uint8)
            else:
                np.copyto(target.view(array.dtype).reshape(shape), array)
            self._parts.append(head + _LOCATION.pack(1, arena.number, offset, size))
            return
        if datatype != "BYTES":
            payload = array.tobytes()
        self._parts.append(head + _LOCATION.pack(0, 0, self._size, size))
        padding = -size % 16
        self._payloads.append(payload)
        if padding:
            self._payloads.append(_PADDING[:padding])
        self._size += size + padding

    def output(self, name: str, value: Any) -> None:
        """What a model gave as an output: an array, or anything with `__dlpack__`. Raises NaiadError."""
        array = value if type(value) is np.ndarray else host_array(value)
        datatype = wire_name_of(array.dtype)
        if datatype == "BYTES":
            array = bytes_array(array)
        elif datatype == "BF16":
            array = array.view(np.uint16)
        elif not array.dtype.isnative:
            array = array.astype(array.dtype.newbyteorder("="))
        self.tensor(name, datatype, array)

    def body(self) -> bytes:
        """The whole body."""
        first = b"".join(self._parts)
        if not self._payloads:
            return _LENGTH.pack(len(first)) + first
        padding = _PADDING[: -(4 + len(first)) % 16]
        return b"".join((_LENGTH.pack(len(first)), first, padding, *self._payloads))


class Decoder:
    """Reads the body of one message. Every method raises LinkBrokenError for what cannot be read."""

    def __init__(self, body: bytes, arenas: ReadArenas) -> None:
        self._body = body
        self._arenas = arenas
        self._at = 4
        try:
            (length,) = _LENGTH.unpack_from(body)
        except struct.error as error:
            raise LinkBrokenError("a message is empty") from error
        self._payloads = 4 + length + (-(4 + length) % 16)

    def unpack(self, form: struct.Struct) -> tuple[Any, ...]:
        """Numbers of that form."""
        try:
            values = form.unpack_from(self._body, self._at)
        except struct.error as error:
            raise LinkBrokenError("a message is too short") from error
        self._at += form.size
        return values

    def raw(self, size: int) -> bytes:
        """So many bytes."""
        start = self._at
        self._at += size
        if self._at > len(self._body):
            raise LinkBrokenError("a message is too short")
        return self._body[start : self._at]

    def value(self, depth: int = 0) -> Any:
        """A value; mappings are dicts, sequences lists."""
        tag = self.raw(1)
        if depth > 32:
            raise LinkBrokenError("the values of a message are nested too deeply")
        match tag:
            case b"n":
                return None
            case b"t" | b"f":
                return tag == b"t"
            case b"i":
                return self.unpack(_INT)[0]
            case b"u":
                return self.unpack(_UINT)[0]
            case b"d":
                return self.unpack(_FLOAT)[0]
            case b"s":
                return self._text()
            case b"b":
                return self.raw(self.unpack(_LENGTH)[0])
            case b"l":
                return [self.value(depth + 1) for _ in range(self.unpack(_LENGTH)[0])]
            case b"m":
                return {self.value(depth + 1): self.value(depth + 1) for _ in range(self.unpack(_LENGTH)[0])}
        raise LinkBrokenError(f"a value begins with {tag!r}")

    def tensor(self) -> Tensor:
        """A tensor; its array is a read-only view on the body or on a block."""
        size = int.from_bytes(self._body[self._at : self._at + 2], "little")
        head = self.raw(size)
        kind = _kinds.get(head)
        if kind is None:
            kind = _kind(head)
        name, datatype, dtype, shape, nbytes = kind
        block, number, offset, size = self.unpack(_LOCATION)
        if nbytes not in (-1, size):
            raise LinkBrokenError(f"tensor '{name}' has {size} bytes, not {nbytes}")
        if nbytes == -1:
            content = (
                self._arenas.array(number, offset, size, np.dtype(np.uint8), (size,)).tobytes()
                if block
                else self._inline(offset, size)
            )
            return Tensor(name, datatype, shape, _strings(name, content, shape))
        if block:
            array = self._arenas.array(number, offset, size, dtype, shape)
        else:
            self._inline(offset, 0)
            try:
                array = np.ndarray(shape, dtype, self._body, self._payloads + offset)
            except (TypeError, ValueError) as error:
                raise LinkBrokenError(f"tensor '{name}' is not all there") from error
        return Tensor(name, datatype, shape, array)

    def _inline(self, offset: int, size: int) -> bytes:
        start = self._payloads + offset
        if start + size > len(self._body) and size:
            raise LinkBrokenError("a message is too short")
        return self._body[start : start + size]

    def _text(self) -> str:
        try:
            return self.raw(self.unpack(_LENGTH)[0]).decode("utf-8", "surrogatepass")
        except UnicodeDecodeError as error:
            raise LinkBrokenError("a text of a message is not UTF-8") from error


def _head(name: str, datatype: str, shape: tuple[int, ...]) -> bytes:
    text = f"{datatype} {name}".encode("utf-8", "surrogatepass")
    content = _DIMS.pack(0, len(text), len(shape)) + text + struct.pack(f"<{len(shape)}q", *shape)
    head = len(content).to_bytes(2, "little") + content[2:]
    if len(_heads) >= _MOST_HEADS:
        _heads.clear()
    _heads[name, datatype, shape] = head
    return head


def _kind(head: bytes) -> tuple[str, str, np.dtype, tuple[int, ...], int]:
    try:
        _, length, rank = _DIMS.unpack_from(head)
        datatype, _, name = head[5 : 5 + length].decode("utf-8", "surrogatepass").partition(" ")
        shape = struct.unpack_from(f"<{rank}q", head, 5 + length)
        kind = TENSOR_TYPES[datatype]
        if any(dim < 0 for dim in shape):
            raise ValueError(f"shape {shape}")
    except (struct.error, KeyError, ValueError) as error:
        raise LinkBrokenError(f"a tensor cannot be read: {error}") from error
    size = -1 if not kind.itemsize else kind.itemsize * int(np.prod(shape, dtype=object))
    if len(_kinds) >= _MOST_HEADS:
        _kinds.clear()
    known = _kinds[head] = (name, datatype, kind.dtype, shape, size)
    return known


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
