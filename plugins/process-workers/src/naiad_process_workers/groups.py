"""How groups of tensors are written: what their heads say. Both processes keep the heads that they have seen."""

import struct
from collections.abc import Iterable, Sequence
from operator import attrgetter
from typing import Any, NamedTuple

import numpy as np

from naiad.errors import InvalidArgumentError
from naiad_process_workers.frames import LinkBrokenError
from naiad_process_workers.values import packed, unpacked
from naiad_tensors.datatypes import TENSOR_TYPES, wire_name_of
from naiad_tensors.laid_out import ArrayLayout, InputLayout

SMALLEST_BLOCK = 4 << 10
"""Bytes of the smallest payload that goes into an arena; a smaller one goes into the message."""

Label = tuple[Any, ...]
"""Plain values, and tuples of such."""

ITEM = 16
"""Each part of a message is padded to a multiple of this many bytes."""

PADS = tuple(b"\0" * size for size in range(ITEM))
LENGTH = struct.Struct("<I")
_MOST_HEADS = 4096


class Form(NamedTuple):
    """How a group is written: its head, and for each tensor the padding, None where it is not simply its bytes.

    `row_pads` is the same where each is simply its bytes, and further rows may follow without a head; () otherwise.
    """

    head: bytes
    pads: tuple[bytes | None, ...]
    datatypes: tuple[str, ...]
    row_pads: tuple[bytes, ...]


class RowForm(NamedTuple):
    """How inputs of one layout are written: the form, and the beginning, the end and the padding of each payload.

    Payloads that follow one another without padding are one span. Without `spans` they are written as other tensors.
    """

    form: Form
    spans: tuple[tuple[int, int, bytes], ...]


class GroupTensor(NamedTuple):
    """One tensor of a group. `step` is how far its payload reaches in the message, -1 if that is not known."""

    name: str
    datatype: str
    dtype: np.dtype
    shape: tuple[int, ...]
    size: int
    step: int
    strides: tuple[int, ...]


class Group(NamedTuple):
    """What a head says. `row` are the bytes of a row of payloads, -1 where there can be but one row.

    Then there is no `layout` either.
    """

    label: Label
    tensors: tuple[GroupTensor, ...]
    names: tuple[str, ...]
    row: int
    layout: ArrayLayout | None


_dtype_and_shape = attrgetter("dtype", "shape")
_forms: dict[tuple[Any, ...], Form] = {}
_output_forms: dict[tuple[Any, ...], Form] = {}
_row_forms: dict[tuple[Label, InputLayout], RowForm] = {}
_groups: dict[bytes, Group] = {}


def form_of(key: tuple[Any, ...]) -> Form:
    """How the tensors of that key are written: a label, and the name, datatype or dtype, and shape of each.

    Raises InvalidArgumentError for a dtype without a datatype.
    """
    form = _forms.get(key)
    if form is None:
        if len(_forms) >= _MOST_HEADS:
            _forms.clear()
        form = _forms[key] = _new_form(key)
    return form


def output_form_of(label: Label, names: Iterable[str], arrays: Sequence[np.ndarray]) -> Form:
    """How outputs of these names are written with that label. Raises as `form_of`."""
    key = (label, *names, *map(_dtype_and_shape, arrays))
    form = _output_forms.get(key)
    if form is None:
        if len(_output_forms) >= _MOST_HEADS:
            _output_forms.clear()
        kinds = zip(key[1 : 1 + len(arrays)], key[1 + len(arrays) :], strict=True)
        form = _output_forms[key] = form_of((label, *(part for name, kind in kinds for part in (name, *kind))))
    return form


def row_form_of(label: Label, layout: InputLayout) -> RowForm:
    """How inputs of that layout are written with that label."""
    row_form = _row_forms.get((label, layout))
    if row_form is None:
        if len(_row_forms) >= _MOST_HEADS:
            _row_forms.clear()
        form = form_of((label, *(part for each in layout.fields for part in (each.name, each.datatype, each.shape))))
        spans: list[tuple[int, int, bytes]] = []
        for each, pad in zip(layout.fields, form.row_pads, strict=True) if form.row_pads else ():
            begin, end = each.start, each.start + each.size
            if spans and spans[-1][1:] == (begin, b""):
                begin = spans.pop()[0]
            spans.append((begin, end, pad))
        row_form = _row_forms[label, layout] = RowForm(form, tuple(spans))
    return row_form


def group_of(head: bytes) -> Group:
    """What a head says. Raises LinkBrokenError."""
    group = _groups.get(head)
    if group is None:
        if len(_groups) >= _MOST_HEADS:
            _groups.clear()
        group = _groups[head] = _new_group(head)
    return group


def _new_form(key: tuple[Any, ...]) -> Form:
    label = packed(key[0])
    parts, pads, datatypes = [LENGTH.pack(len(label)), label], [], []
    for name, kind, shape in zip(key[1::3], key[2::3], key[3::3], strict=True):
        datatype = kind if isinstance(kind, str) else _wire_name(name, kind)
        tensor_type = TENSOR_TYPES[datatype]
        content = packed((str(name), datatype, shape))
        parts += (LENGTH.pack(len(content)), content)
        size = tensor_type.itemsize * int(np.prod(shape, dtype=object))
        plain = tensor_type.itemsize and size < SMALLEST_BLOCK and (kind is datatype or kind == tensor_type.dtype)
        pads.append(PADS[-size % ITEM] if plain else None)
        datatypes.append(datatype)
    content = b"".join(parts)
    padding = -(8 + len(content)) % ITEM
    head = struct.pack("<II", 8 + len(content) + padding, len(datatypes)) + content + PADS[padding]
    row_pads = [pad for pad, shape in zip(pads, key[3::3], strict=True) if pad is not None and shape]
    return Form(head, tuple(pads), tuple(datatypes), tuple(row_pads) if len(row_pads) == len(pads) else ())


def _wire_name(name: str, dtype: np.dtype) -> str:
    try:
        return wire_name_of(dtype)
    except InvalidArgumentError as error:
        raise InvalidArgumentError(f"output '{name}': {error}") from error


def _new_group(head: bytes) -> Group:
    try:
        _, count = struct.unpack_from("<II", head)
        at, values = 8, []
        for _ in range(1 + count):
            (length,) = LENGTH.unpack_from(head, at)
            values.append(unpacked(head[at + 4 : at + 4 + length]))
            at += 4 + length
        label = tuple(tuple(each) if isinstance(each, list) else each for each in values[0])
        tensors = tuple(_tensor(*each) for each in values[1:])
    except (struct.error, KeyError, TypeError, ValueError) as error:
        raise LinkBrokenError(f"a group of tensors cannot be read: {error}") from error
    repeats = tensors and all(each.step >= 0 and each.shape for each in tensors)
    row, layout = -1, None
    if repeats:
        row = sum(each.step for each in tensors)
        layout = ArrayLayout([(each.name, each.datatype, each.dtype, each.shape) for each in tensors])
    return Group(label, tensors, tuple(each.name for each in tensors), row, layout)


def _tensor(name: str, datatype: str, dims: list[int]) -> GroupTensor:
    kind, shape = TENSOR_TYPES[datatype], tuple(dims)
    if not isinstance(name, str) or any(not isinstance(dim, int) or dim < 0 for dim in shape):
        raise ValueError(f"tensor '{name}' of shape {shape}")
    size = kind.itemsize * int(np.prod(shape, dtype=object))
    inline = kind.itemsize and size < SMALLEST_BLOCK
    step = size + -size % ITEM if inline else -1
    strides = np.empty(shape, kind.dtype).strides if inline else ()
    return GroupTensor(name, datatype, kind.dtype, shape, size, step, strides)
