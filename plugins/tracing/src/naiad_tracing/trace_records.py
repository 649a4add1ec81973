"""The records of a trace in a file, and their JSON, in Triton's form: identity, timestamps and tensors.

`qa/common/trace_summary.py` of Triton reads this form; a file is one array of these objects.
"""

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from naiad_tensors.datatypes import bf16_to_fp32
from naiad_tensors.tensors import Tensor

_CHUNK_ELEMENTS = 1024
"""How many elements are converted to text at a time: other threads run in between, however large a tensor is."""

_DIGITS = {2: (3, 5), 4: (6, 9), 8: (15, 17)}
"""How many digits we try, and how many always identify a float of that many bytes."""


@dataclass(frozen=True, slots=True)
class Timestamp:
    """An event at that `time.monotonic_ns()`."""

    ns: int
    event: str


@dataclass(frozen=True, slots=True)
class TensorRecord:
    """A tensor at that `time.monotonic_ns()`; `content` is our own copy, None where numpy cannot read it."""

    ns: int
    activity: str
    name: str
    datatype: str
    shape: tuple[int, ...]
    content: np.ndarray | None


@dataclass(frozen=True, slots=True)
class TraceRecord:
    """One trace that has ended; `parent` 0 is none."""

    number: int
    parent: int
    model: str
    version: int
    request_id: str
    entries: tuple[Timestamp | TensorRecord, ...]

    @property
    def byte_size(self) -> int:
        """About how much memory it holds."""
        tensors = (
            entry.content for entry in self.entries if isinstance(entry, TensorRecord) and entry.content is not None
        )
        return 200 * (1 + len(self.entries)) + sum(_byte_size(content) for content in tensors)


def tensor_records(ns: int, activity: str, tensors: Iterable[Tensor]) -> Iterator[TensorRecord]:
    """Records with copies of these tensors."""
    for tensor in tensors:
        try:
            content = np.array(tensor.array, copy=True)
        except Exception:  # noqa: BLE001 - memory of a device that numpy cannot read must not fail a request
            content = None
        yield TensorRecord(ns, activity, tensor.name, tensor.datatype, tensor.shape, content)


def record_text(record: TraceRecord) -> str:
    """The objects of a trace in the order of time, with commas between them."""
    identity: dict[str, Any] = {"id": record.number, "model_name": record.model, "model_version": record.version}
    if record.request_id:
        identity["request_id"] = record.request_id
    if record.parent:
        identity["parent_id"] = record.parent
    entries = (_entry_object(record.number, entry) for entry in sorted(record.entries, key=lambda entry: entry.ns))
    return ",\n".join(json.dumps(each, separators=(",", ":")) for each in (identity, *entries))


def tensor_text(datatype: str, content: np.ndarray) -> str:
    """The elements with commas between them; those of BYTES are JSON strings, so that a comma in one is no end."""
    flat = content.ravel()
    parts = (flat[start : start + _CHUNK_ELEMENTS] for start in range(0, flat.size, _CHUNK_ELEMENTS))
    return ",".join([",".join(_element_texts(datatype, part)) for part in parts])


def _element_texts(datatype: str, flat: np.ndarray) -> Iterable[str]:
    if datatype == "BYTES":
        decoded = (bytes(element).decode("utf-8", "backslashreplace") for element in flat)
        return (json.dumps(text, ensure_ascii=False) for text in decoded)
    if datatype == "BF16":
        flat = bf16_to_fp32(flat)
    if flat.dtype.kind == "f":
        return _float_texts(flat)
    return map(str, (flat.astype(np.uint8) if flat.dtype.kind == "b" else flat).tolist())


def _float_texts(flat: np.ndarray) -> Iterable[str]:
    """Few digits where they are enough, else as many as it takes to read the same float back."""
    few, enough = _DIGITS[flat.itemsize]
    values = flat.tolist()
    short = [f"{value:.{few}g}" for value in values]
    with np.errstate(over="ignore"):
        exact = np.array([float(text) for text in short], dtype=flat.dtype) == flat
    each = zip(values, short, exact.tolist(), strict=True)
    return (text if is_exact else f"{value:.{enough}g}" for value, text, is_exact in each)


def _entry_object(number: int, entry: Timestamp | TensorRecord) -> dict[str, Any]:
    if isinstance(entry, Timestamp):
        return {"id": number, "timestamps": [{"name": entry.event, "ns": entry.ns}]}
    tensor = {
        "name": entry.name,
        "data": "" if entry.content is None else tensor_text(entry.datatype, entry.content),
        "shape": ",".join(map(str, entry.shape)),
        "dtype": entry.datatype,
    }
    return {"id": number, "activity": entry.activity, "tensor": tensor}


def _byte_size(content: np.ndarray) -> int:
    if content.dtype.hasobject:
        return int(content.nbytes) + sum(len(element) for element in content.ravel())
    return int(content.nbytes)
