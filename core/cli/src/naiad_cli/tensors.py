"""Tensors on the command line: read from text and files, sent as the protocol's binary form, and printed."""

import json
import math
import struct
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from naiad.errors import InvalidArgumentError
from naiad_tensors.datatypes import bf16_to_fp32, fp32_to_bf16, tensor_type
from naiad_tensors.tensors import bytes_array

_NOT_NUMBERS = "the values are not numbers, or lists of unequal length"


def read_tensor(name: str, text: str, datatype: str, shape: Sequence[int]) -> np.ndarray:
    """The tensor that `text` writes, as the array of that wire datatype (BF16 as its bits).

    `text` is values with commas between them, JSON, or `@` and a `.npy` or `.json` file. Flat values take the model's
    `shape`, in which -1 stands for any length. Raises InvalidArgumentError for what cannot be such a tensor.
    """
    try:
        values = _read_file(Path(text[1:])) if text.startswith("@") else _parse(text, datatype)
        array = _convert(values, datatype)
    except json.JSONDecodeError as error:
        raise InvalidArgumentError(f"input '{name}' ({datatype}): '{text[:80]}' is not valid JSON: {error}") from error
    except (OSError, ValueError, OverflowError, TypeError) as error:
        raise InvalidArgumentError(f"input '{name}' ({datatype}) cannot be read from '{text[:80]}': {error}") from error
    has_shape = array.ndim > 1 or (text.startswith("@") and text.endswith(".npy"))
    return array if has_shape else _shaped(name, array, shape)


def _read_file(path: Path) -> Any:
    if path.suffix == ".npy":
        return np.load(path, allow_pickle=False)
    if path.suffix == ".json":
        return json.loads(path.read_text(encoding="utf-8"))
    raise ValueError("give a .npy or a .json file")


def _parse(text: str, datatype: str) -> Any:
    if text.lstrip().startswith("["):
        return json.loads(text)
    if datatype == "BYTES":
        return [text]
    return [_element(word) for word in text.replace(",", " ").split()]


def _element(word: str) -> Any:
    try:
        return json.loads(word)
    except ValueError as error:
        raise ValueError(f"'{word}' is not a number, true or false") from error


def _convert(values: Any, datatype: str) -> np.ndarray:
    kind = tensor_type(datatype)
    try:
        array = np.asarray(values)
    except ValueError:  # of numpy, about its own arrays
        raise ValueError(_NOT_NUMBERS) from None
    if datatype == "BYTES":
        return bytes_array(np.asarray(values, dtype=object) if array.dtype.kind != "S" else array)
    if array.dtype.kind not in "biuf" and array.size:
        raise ValueError(_NOT_NUMBERS)
    if datatype == "BF16":
        return fp32_to_bf16(array.astype(np.float32))
    with np.errstate(over="ignore", invalid="ignore"):  # what does not fit is refused below
        converted = array.astype(kind.dtype)
    fits = np.array_equal(converted, array) if kind.dtype.kind in "iub" else np.isfinite(converted[np.isfinite(array)])
    if not np.all(fits):
        raise ValueError(f"a value does not fit into {datatype}")
    return converted


def _shaped(name: str, array: np.ndarray, shape: Sequence[int]) -> np.ndarray:
    """The flat array in the model's shape; the last -1 takes what the fixed dimensions leave, other ones become 1."""
    fixed: int = math.prod(length for length in shape if length >= 0)
    dims = [1 if length < 0 else length for length in shape]
    free = [axis for axis, length in enumerate(shape) if length < 0]
    if free and fixed:
        dims[free[-1]] = array.size // fixed
    try:
        return array.reshape(dims)
    except ValueError:
        message = f"input '{name}' has {array.size} values, which do not fill the shape {list(shape)}"
        raise InvalidArgumentError(message) from None


def to_wire(array: np.ndarray) -> bytes:
    """The elements, row by row, little-endian; BYTES elements after their length in four bytes."""
    if array.dtype == np.dtype(object):
        return b"".join(struct.pack("<I", len(element)) + element for element in array.ravel().tolist())
    return np.ascontiguousarray(array).astype(array.dtype.newbyteorder("<"), copy=False).tobytes()


def from_wire(chunk: bytes, datatype: str, shape: Sequence[int]) -> np.ndarray:
    """The array of those bytes. Raises InvalidArgumentError when they are not as many as the shape needs."""
    try:
        if datatype != "BYTES":
            return np.frombuffer(chunk, dtype=tensor_type(datatype).dtype.newbyteorder("<")).reshape(shape)
        elements, offset = [], 0
        while offset < len(chunk):
            (length,) = struct.unpack_from("<I", chunk, offset)
            elements.append(chunk[offset + 4 : offset + 4 + length])
            offset += 4 + length
        array = np.empty(len(elements), dtype=object)
        array[:] = elements
        return array.reshape(shape)
    except (ValueError, struct.error) as error:
        raise InvalidArgumentError(f"the server's {datatype}{list(shape)} output cannot be read: {error}") from error


def shown(array: np.ndarray, datatype: str) -> str:
    """The values as text, long tensors with their middle left out; BYTES as UTF-8 where they are."""
    if datatype == "BF16":
        return np.array2string(bf16_to_fp32(array), separator=", ")
    if datatype == "BYTES":
        array = np.array([_text(element) for element in array.ravel().tolist()], dtype=object).reshape(array.shape)
    return np.array2string(array, separator=", ")


def json_elements(array: np.ndarray, datatype: str) -> list[Any]:
    """The elements, row by row, as JSON has them; what is not UTF-8 in BYTES with each such byte escaped."""
    if datatype == "BF16":
        array = bf16_to_fp32(array)
    elements: list[Any] = array.ravel().tolist()
    return [each.decode(errors="backslashreplace") if isinstance(each, bytes) else each for each in elements]


def _text(element: bytes) -> str | bytes:
    try:
        return element.decode()
    except UnicodeDecodeError:
        return element


def parameter(text: str) -> bool | int | float | str:
    """A parameter's value: JSON's true, false or number, else the text itself."""
    try:
        value = json.loads(text)
    except ValueError:
        return text
    return value if isinstance(value, bool | int | float | str) else text


def outputs_of(answer: Mapping[str, Any], tail: bytes) -> list[tuple[str, str, np.ndarray]]:
    """Name, datatype and array of each output; `tail` holds the binary ones, in order."""
    outputs = []
    for output in answer.get("outputs", []):
        name, datatype, shape = output["name"], output["datatype"], output["shape"]
        size = output.get("parameters", {}).get("binary_data_size")
        if size is None:
            outputs.append((name, datatype, _convert(output["data"], datatype).reshape(shape)))
            continue
        outputs.append((name, datatype, from_wire(tail[:size], datatype, shape)))
        tail = tail[size:]
    return outputs
