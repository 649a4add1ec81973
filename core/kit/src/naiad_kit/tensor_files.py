"""Tensors in files of model folders: raw elements in row-major order, or strings with their lengths in front."""

from math import prod
from pathlib import Path

import numpy as np

from naiad.errors import InvalidArgumentError
from naiad_kit.buffers import bool_array, object_array
from naiad_tensors.datatypes import TensorType


def read_tensor_file(path: Path, setting: str, kind: TensorType, shape: tuple[int, ...]) -> np.ndarray:
    """The tensor in a file that `setting` (`warmup`, `initial_state`) of a configuration names; writeable.

    Bytes behind it are ignored, but not strings. Raises InvalidArgumentError naming the file.
    """
    try:
        raw = path.read_bytes()
    except (OSError, ValueError) as error:  # the latter for a name with a NUL
        reason = getattr(error, "strerror", None) or error
        raise InvalidArgumentError(f"{setting} file '{path}' cannot be read: {reason}") from error
    if not kind.itemsize:
        return _strings(raw, path, prod(shape)).reshape(shape)
    expected = prod(shape) * kind.itemsize
    if len(raw) < expected:
        raise InvalidArgumentError(
            f"{setting} setting expects {expected} bytes, but the data provided from '{path}' only has {len(raw)} bytes"
        )
    if kind.wire == "BOOL":
        return bool_array(shape, raw).copy()
    return np.ndarray(shape, kind.dtype, raw).copy()


def _strings(raw: bytes, path: Path, count: int) -> np.ndarray:
    elements, offset = [], 0
    while offset < len(raw):
        end = offset + 4 + int.from_bytes(raw[offset : offset + 4], "little")
        if offset + 4 > len(raw) or end > len(raw):
            raise InvalidArgumentError(f"file '{path}' ends within the string at byte {offset}")
        elements.append(raw[offset + 4 : end])
        offset = end
    if len(elements) != count:
        raise InvalidArgumentError(f"file '{path}' holds {len(elements)} strings; the dims need {count}")
    return object_array(elements)
