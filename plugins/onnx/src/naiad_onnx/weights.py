"""Memory of an ONNX model's weights: the size of its file and of the external data files that it names."""

import mmap
from pathlib import Path

_LOCATION = b"location\x12"
"""What comes before the name of an external data file in `onnx.proto`: the key of the entry, then the value's field."""


def weight_bytes(path: Path) -> int:
    """The bytes of the model's file and of its external data, which `onnx.proto` keeps in the same folder or below.

    The nodes of the graph count too: some 100 bytes each beside weights of MB.
    """
    size = path.stat().st_size
    beside = [each for each in path.parent.rglob("*") if each.is_file() and each != path]
    if not beside or not size:
        return size
    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content:
        named = [each for each in beside if content.find(_entry(each.relative_to(path.parent))) >= 0]
    return size + sum(each.stat().st_size for each in named)


def _entry(location: Path) -> bytes:
    """The bytes of the entry that names this file: its key, its length in one or two bytes, and the name."""
    name = location.as_posix().encode()
    length = bytes([len(name)]) if len(name) < 128 else bytes([len(name) & 127 | 128, len(name) >> 7])
    return _LOCATION + length + name
