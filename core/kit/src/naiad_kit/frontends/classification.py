"""Classification extension: the top classes of an output with values, indices and labels, as strings."""

from collections.abc import Sequence

import numpy as np

from naiad.errors import InvalidArgumentError
from naiad_kit.buffers import object_array
from naiad_tensors.tensors import Tensor

_MOST_ELEMENTS = 1_000_000
_WITHOUT_CLASSES = frozenset(("BYTES", "BOOL", "FP16", "BF16"))


def best_classes(tensor: Tensor, classes: int, labels: Sequence[str], batched: bool) -> Tensor:
    """A BYTES tensor of the `classes` largest values in falling order, for each entry of the batch where `batched`.

    An element is `<value>:<index>`, or `<value>:<index>:<label>` where there is a label; an empty one is none. Of equal
    values the smaller index comes first; NaN comes last. Raises InvalidArgumentError for a datatype without order and
    for huge tensors.
    """
    if tensor.datatype in _WITHOUT_CLASSES:
        raise InvalidArgumentError(
            f"class result not available for output '{tensor.name}' due to unsupported type '{tensor.datatype}'"
        )
    array = tensor.array
    if array.size > _MOST_ELEMENTS:
        raise InvalidArgumentError(
            f"classification output tensor too large: '{tensor.name}' has {array.size} elements, "
            f"{_MOST_ELEMENTS} is the most that can be classified"
        )
    entries = array.shape[0] if batched else 1
    rows = array.reshape(entries, array.size // max(entries, 1))
    kept = min(classes, rows.shape[1])
    elements = [message for row in rows for message in _best_of(row, kept, labels)]
    shape = (entries, kept) if batched else (kept,)
    return Tensor(tensor.name, "BYTES", shape, object_array(elements).reshape(shape))


def _best_of(row: np.ndarray, kept: int, labels: Sequence[str]) -> list[bytes]:
    chosen = _candidates(row, kept) if 0 < kept < len(row) else np.arange(len(row))
    # sorting the reversed values in rising order keeps equal ones in order when the result is read backwards
    keys = row[chosen][::-1]
    if row.dtype.kind == "f" and np.isnan(keys).any():
        there = ~np.isnan(keys)
        rising = np.lexsort((np.where(there, keys, 0), there))
    else:
        rising = np.argsort(keys, kind="stable")
    order = chosen[len(chosen) - 1 - rising[::-1][:kept]]
    return [_class_text(row[index], int(index), labels) for index in order]


def _candidates(row: np.ndarray, kept: int) -> np.ndarray:
    """The indices of the `kept` best values, rising: of several that equal the worst of them, the first ones."""
    ranks = row
    missing = np.isnan(row) if row.dtype.kind == "f" else None
    if missing is not None and missing.any():
        present = len(row) - int(missing.sum())
        if present <= kept:
            return np.sort(np.concatenate((np.flatnonzero(~missing), np.flatnonzero(missing)[: kept - present])))
        ranks = np.where(missing, -np.inf, row)
    worst = np.partition(ranks, len(row) - kept)[len(row) - kept]
    above = np.flatnonzero(ranks > worst)
    equal = ranks == worst
    if missing is not None:
        equal &= ~missing
    return np.sort(np.concatenate((above, np.flatnonzero(equal)[: kept - len(above)])))


def _class_text(value: np.generic, index: int, labels: Sequence[str]) -> bytes:
    number = f"{value:f}" if value.dtype.kind == "f" else str(value)
    label = f":{labels[index]}" if index < len(labels) and labels[index] else ""
    return f"{number}:{index}{label}".encode()
