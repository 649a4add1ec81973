"""Request tables: the requests of a batch as arrays of the structs of `naiad_custom.h`."""

import ctypes
import json
import struct
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from naiad.batch import Batch
from naiad.types import Request
from naiad_custom.shared_library import abi
from naiad_kit.buffers import pack_strings

SMALL = 16 << 10
"""Up to so many bytes a request, joining the arrays of a batch costs less than asking each for its address (1 µs)."""

_Row = tuple[tuple[int, ...], int, int]
"""One request's part of an input: its shape, the address of its content, and the bytes of it."""


class RequestTable:
    """The naiad_requests of one batch at a time, in memory that is used again for the next; `head` points to it.

    `wanted` says which outputs a request asks for. Contents are not copied where they lie as the library needs them.
    """

    def __init__(self, head: abi.Batch, requested_outputs: Callable[[Request], Sequence[str]]) -> None:
        self._head = head
        self._requested_outputs = requested_outputs
        self._texts: dict[str, int] = {}
        self._buffers: list[Any] = []
        self._kept: list[Any] = []
        self._words = bytearray()
        self._base = 0
        self._nothing, self._no_parameters = self._text(""), self._text("{}")

    def fill(self, batch: Batch) -> None:
        """Write the structs of a batch. The memory that they point to is kept until `release`."""
        requests = batch.requests
        count = len(requests)
        columns = [(self._text(name), *self._column(batch, name)) for name in requests[0].inputs]
        output_names = self._outputs(requests)
        width = len(columns)
        parts = (
            count * abi.REQUEST_WORDS,
            count * width * abi.TENSOR_WORDS,
            sum(len(row[0]) for _, _, rows in columns for row in rows) + sum(map(len, output_names)),
        )
        self._make_room(sum(parts))
        tensors_at = self._base + 8 * parts[0]
        extras_at = tensors_at + 8 * parts[1]
        words: list[int] = []
        tensors: list[int] = []
        extras: list[int] = []  # dims, and the names of outputs
        for index, request in enumerate(requests):
            inputs_at = tensors_at + 8 * len(tensors)
            for name, datatype, rows in columns:
                shape, content, size = rows[index]
                tensors += (name, datatype, extras_at + 8 * len(extras), len(shape), content, size)
                extras += shape
            outputs = output_names[index]
            message = self._passing(request.id) if request.id else self._nothing
            parameters = self._parameters(request) if request.parameters else self._no_parameters
            outputs_at = extras_at + 8 * len(extras)
            words += (message, parameters, inputs_at, width, outputs_at, len(outputs), batch.sizes[index])
            extras += outputs
        struct.pack_into(f"{sum(parts)}Q", self._words, 0, *words, *tensors, *extras)
        head = self._head
        head.requests, head.request_count, head.batch_size = self._base, count, batch.size

    def release(self) -> None:
        """Let go of the batch's contents."""
        self._head.request_count = 0
        self._kept.clear()

    def _outputs(self, requests: Sequence[Request]) -> list[list[int]]:
        """The names of the outputs that each request asks for; most ask for the same."""
        known: dict[tuple[str, ...], list[int]] = {}
        for request in requests:
            if request.requested not in known:
                known[request.requested] = [self._text(name) for name in self._requested_outputs(request)]
        return [known[request.requested] for request in requests]

    def _column(self, batch: Batch, name: str) -> tuple[int, Sequence[_Row]]:
        """The datatype of an input, and the rows of all requests."""
        requests = batch.requests
        first = requests[0].inputs[name]
        datatype = self._text(first.datatype)
        if first.datatype == "BYTES":
            return datatype, [self._packed(request.inputs[name].array) for request in requests]
        alone = len(requests) == 1 or (batch.layout is not None and batch.layout.covers(name))
        if alone or first.array.nbytes > SMALL * batch.sizes[0]:
            return datatype, [self._laid(request.inputs[name].array) for request in requests]
        joined = batch.input(name)
        shape, address, size = self._laid(joined)
        step = size // max(batch.size, 1)
        rows: list[_Row] = []
        for items in batch.sizes:
            rows.append(((items, *shape[1:]), address, items * step))
            address += items * step
        return datatype, rows

    def _laid(self, array: np.ndarray) -> _Row:
        if not array.flags.c_contiguous:
            array = np.array(array, order="C")
        address = array.ctypes.data
        if address % array.itemsize:  # a view into the body of a request may begin anywhere
            array = array.copy()
            address = array.ctypes.data
        self._kept.append(array)
        return array.shape, address, array.nbytes

    def _packed(self, array: np.ndarray) -> _Row:
        content = pack_strings(array.ravel().tolist())
        self._kept.append(content)
        return array.shape, ctypes.cast(ctypes.c_char_p(content), ctypes.c_void_p).value or 0, len(content)

    def _parameters(self, request: Request) -> int:
        return self._passing(json.dumps(dict(request.parameters)))

    def _passing(self, text: str) -> int:
        """The address of a text of this request alone."""
        buffer = ctypes.create_string_buffer(text.encode("utf-8", "replace"))
        self._kept.append(buffer)
        return ctypes.addressof(buffer)

    def _text(self, text: str) -> int:
        """The address of a name that the configuration has."""
        address = self._texts.get(text)
        if address is None:
            buffer = ctypes.create_string_buffer(text.encode())
            self._buffers.append(buffer)
            address = self._texts[text] = ctypes.addressof(buffer)
        return address

    def _make_room(self, words: int) -> None:
        if 8 * words > len(self._words):
            self._words = bytearray(16 * words)
            self._base = ctypes.addressof(ctypes.c_char.from_buffer(self._words))
