"""What a trace in a file consists of, in the incumbent's JSON form: identity, timestamps and tensors.

`qa/common/trace_summary.py` of Triton reads this form; a file is one array of these objects.
"""

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from naiad.datatypes import bf16_to_fp32
from naiad.types import Tensor


@dataclass(frozen=True, slots=True)
class Happened:
    """Something happened at that `time.monotonic_ns()`."""

    ns: int
    event: str


@dataclass(frozen=True, slots=True)
class Seen:
    """A tensor was seen at that `time.monotonic_ns()`; `content` is our own copy, None where numpy cannot read it."""

    ns: int
    activity: str
    name: str
    datatype: str
    shape: tuple[int, ...]
    content: np.ndarray | None


@dataclass(frozen=True, slots=True)
class Story:
    """One trace that is over; `parent` 0 is none."""

    number: int
    parent: int
    model: str
    version: int
    request_id: str
    entries: tuple[Happened | Seen, ...]

    @property
    def byte_size(self) -> int:
        """About how much memory it holds."""
        tensors = (entry.content for entry in self.entries if isinstance(entry, Seen) and entry.content is not None)
        return 200 * (1 + len(self.entries)) + sum(_byte_size(content) for content in tensors)


def seen(ns: int, activity: str, tensors: Iterable[Tensor]) -> Iterator[Seen]:
    """Entries with copies of these tensors."""
    for tensor in tensors:
        try:
            content = np.array(tensor.array, copy=True)
        except Exception:  # noqa: BLE001 - memory of a device that numpy cannot read must not fail a request
            content = None
        yield Seen(ns, activity, tensor.name, tensor.datatype, tensor.shape, content)


def story_text(story: Story) -> str:
    """The objects of a trace in the order of time, with commas between them."""
    identity: dict[str, Any] = {"id": story.number, "model_name": story.model, "model_version": story.version}
    if story.request_id:
        identity["request_id"] = story.request_id
    if story.parent:
        identity["parent_id"] = story.parent
    told = (_told(story.number, entry) for entry in sorted(story.entries, key=lambda entry: entry.ns))
    return ",\n".join(json.dumps(each, separators=(",", ":")) for each in (identity, *told))


def tensor_text(datatype: str, content: np.ndarray) -> str:
    """The elements with commas between them; those of BYTES are JSON strings, so that a comma in one is no end."""
    flat = content.ravel()
    if datatype == "BYTES":
        return ",".join(
            json.dumps(bytes(element).decode("utf-8", "backslashreplace"), ensure_ascii=False) for element in flat
        )
    if datatype == "BF16":
        flat = bf16_to_fp32(flat)
    if flat.dtype.kind == "b":
        flat = flat.astype(np.uint8)
    if flat.dtype.kind == "f":
        return ",".join(text.removesuffix(".0") for text in flat.astype(str).tolist())
    return ",".join(map(str, flat.tolist()))


def _told(number: int, entry: Happened | Seen) -> dict[str, Any]:
    if isinstance(entry, Happened):
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
