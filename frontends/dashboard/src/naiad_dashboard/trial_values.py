"""Values of a trial's input: from typed numbers, JSON, text, .npy files, image pixels and bytes to tensors. Pure."""

import base64
import binascii
import io
import json
import re
from collections.abc import Mapping
from itertools import chain
from typing import Any

import numpy as np

from naiad.errors import InvalidArgumentError
from naiad.reports import TensorMetadata
from naiad_kit.frontends.shapes import count_elements, deduced_shape
from naiad_tensors.datatypes import fp32_to_bf16, tensor_type
from naiad_tensors.tensors import Tensor, bytes_array

_WORDS = {"true": True, "false": False, "1": True, "0": False}
_MOST_ELEMENTS = 1 << 24
"""A trial is for a look at a model: so many elements take 128 MiB at most."""

_MOST_DIMENSIONS = 32
_MEAN, _DEVIATION = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)
"""Those of ImageNet's colours: https://pytorch.org/vision/stable/models.html."""

SCALES = ("0-255", "0-1", "-1-1", "imagenet")
"""What the colours of an image become."""


def read_tensor(entry: Mapping[str, Any], declared: TensorMetadata) -> Tensor:
    """The tensor that an entry of a trial's form describes, of the declared datatype.

    `kind` says what its `value` is: `values` (numbers or JSON as text), `text` (one string), and in base64 `npy` (a
    file of numpy), `file` (one element of BYTES) or `image` (RGB bytes of `height` by `width`, with `scale`). `shape`
    as text counts more than what follows from the value. Raises InvalidArgumentError.
    """
    kind, value = entry.get("kind"), entry.get("value")
    if not isinstance(value, str):
        raise InvalidArgumentError(f"input '{declared.name}' has no value")
    if kind == "values":
        array = _typed(value, declared)
    elif kind == "text" and declared.datatype == "BYTES":
        array = _strings([_utf8(value, declared.name)])
    elif kind == "file" and declared.datatype == "BYTES":
        array = _strings([_decoded(value, declared.name)])
    elif kind == "npy":
        array = _converted(read_npy(_decoded(value, declared.name), declared.name), declared)
    elif kind == "image":
        array = _image(_decoded(value, declared.name), entry, declared)
    else:
        raise InvalidArgumentError(f"input '{declared.name}' of {declared.datatype} cannot be of the kind {kind!r:.40}")
    return _shaped(array, str(entry.get("shape") or ""), declared)


def read_npy(content: bytes, name: str) -> np.ndarray:
    """The array in a .npy file, without a copy (https://numpy.org/doc/stable/reference/generated/numpy.lib.format.html).

    Raises InvalidArgumentError for a file of another format, of Python objects, or shorter than its shape says.
    """
    stream = io.BytesIO(content)
    try:
        version = np.lib.format.read_magic(stream)
        read = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
        shape, fortran, dtype = read(stream)
        if dtype.hasobject:
            raise InvalidArgumentError(f"the file of input '{name}' has Python objects; save numbers or text")
        count = count_elements(shape, dtype.itemsize, name)
        flat = np.frombuffer(content, dtype, count, stream.tell())
    except ValueError as error:
        raise InvalidArgumentError(f"the file of input '{name}' is not a .npy file: {error}") from error
    return flat.reshape(shape, order="F" if fortran else "C")


def image_form(shape: tuple[int, ...], datatype: str) -> dict[str, Any] | None:
    """How an image becomes a tensor of that shape: its layout (HWC or CHW) and sizes, 0 for free ones; None: never."""
    if datatype in ("BYTES", "BOOL") or len(shape) < 3:
        return None
    *_, first, middle, last = shape
    if last in (1, 3):
        height, width, channels, layout = first, middle, last, "HWC"
    elif first in (1, 3):
        height, width, channels, layout = middle, last, first, "CHW"
    else:
        return None
    return {"layout": layout, "height": max(0, height), "width": max(0, width), "channels": channels}


def _typed(text: str, declared: TensorMetadata) -> np.ndarray:
    """The array of typed numbers or JSON; one number alone fills a shape that is fixed but for its first size."""
    stripped = text.strip()
    if stripped.startswith("[") or declared.datatype == "BYTES":
        try:
            parsed = json.loads(stripped)
        except (ValueError, RecursionError) as error:
            raise InvalidArgumentError(f"the values of input '{declared.name}' are not valid JSON: {error}") from error
        sizes, elements = _flat(parsed if isinstance(parsed, list) else [parsed], declared.name)
    else:
        words = re.split(r"[\s,;]+", stripped.strip(",; \n\t")) if stripped else []
        sizes, elements = (len(words),), [_number(word, declared) for word in words]
    if not elements and 0 not in declared.shape:
        raise InvalidArgumentError(f"input '{declared.name}' has no values; write at least one")
    array = _array(elements, declared).reshape(sizes)
    fixed = tuple(size if size > 0 else 1 for size in declared.shape)
    if array.size == 1 and count_elements(fixed, 1, declared.name) > 1 and -1 not in declared.shape[1:]:
        return np.full(fixed, array.ravel()[0], array.dtype)
    return array


def _number(word: str, declared: TensorMetadata) -> float | int | bool:
    try:
        if declared.datatype == "BOOL":
            return _WORDS[word.lower()]
        return float(word) if declared.datatype in ("FP16", "BF16", "FP32", "FP64") else int(word)
    except (KeyError, ValueError):
        raise InvalidArgumentError(
            f"{word!r:.40} of input '{declared.name}' is not a value of {declared.datatype}"
        ) from None


def _flat(value: list[Any], name: str) -> tuple[tuple[int, ...], list[Any]]:
    """The shape and the elements of nested lists. Raises InvalidArgumentError for lists that form no box."""
    sizes, level = [len(value)], value
    while any(isinstance(each, list) for each in level):
        lengths = {len(each) if isinstance(each, list) else -1 for each in level}
        if len(lengths) > 1 or len(sizes) >= _MOST_DIMENSIONS:
            raise InvalidArgumentError(f"the lists of input '{name}' differ in length; each level needs one length")
        sizes.append(lengths.pop())
        level = list(chain.from_iterable(level))
    return tuple(sizes), level


def _array(elements: list[Any], declared: TensorMetadata) -> np.ndarray:
    """The elements in the dtype of the datatype, in one dimension; nothing is rounded to an integer or truncated."""
    datatype, name = declared.datatype, declared.name
    allowed = {"BYTES": (str,), "BOOL": (bool,)}.get(datatype, (int, float) if "F" in datatype else (int,))
    wrong = next(
        (e for e in elements if not isinstance(e, allowed) or (isinstance(e, bool) and bool not in allowed)), None
    )
    if wrong is not None:
        raise InvalidArgumentError(f"{wrong!r:.40} of input '{name}' is not a value of {datatype}")
    if datatype == "BYTES":
        return _strings([_utf8(each, name) for each in elements])
    try:
        if datatype == "BF16":
            return fp32_to_bf16(np.array(elements, np.float32))
        dtype = tensor_type(datatype).dtype
        if dtype.kind in "iu" and elements:
            limits = np.iinfo(dtype)
            if min(elements) < limits.min or max(elements) > limits.max:
                raise InvalidArgumentError(
                    f"input '{name}' has values outside of {datatype}: {limits.min} to {limits.max}"
                )
        with np.errstate(over="ignore"):
            return np.array(elements, dtype)
    except OverflowError as error:
        raise InvalidArgumentError(f"input '{name}' has a value that {datatype} cannot hold: {error}") from error


def _utf8(text: str, name: str) -> bytes:
    try:
        return text.encode()
    except UnicodeEncodeError as error:
        raise InvalidArgumentError(f"a text of input '{name}' is not valid Unicode: {error}") from error


def _strings(values: list[bytes]) -> np.ndarray:
    array = np.empty(len(values), dtype=object)
    array[:] = values
    return array


def _converted(array: np.ndarray, declared: TensorMetadata) -> np.ndarray:
    """An array of a file in the dtype of the datatype, if each of its values stays what it is, or is a float."""
    datatype = declared.datatype
    if datatype == "BYTES":
        if array.dtype.kind not in "SU":
            raise InvalidArgumentError(f"the file has {array.dtype}, input '{declared.name}' needs text")
        return bytes_array(array)
    dtype = np.dtype(np.float32) if datatype == "BF16" else tensor_type(datatype).dtype
    converted = array
    if array.dtype != dtype:
        if not np.can_cast(array.dtype, dtype, "same_kind"):
            raise InvalidArgumentError(f"the file has {array.dtype}, input '{declared.name}' needs {datatype}")
        converted = array.astype(dtype)
        if dtype.kind in "iu" and not np.array_equal(converted, array):
            raise InvalidArgumentError(f"the file has values that do not fit {datatype} of input '{declared.name}'")
    return fp32_to_bf16(converted) if datatype == "BF16" else converted


def _image(content: bytes, entry: Mapping[str, Any], declared: TensorMetadata) -> np.ndarray:
    """An image in the layout of the input, with a batch dimension where the input has four."""
    form = image_form(declared.shape, declared.datatype)
    height, width, scale = entry.get("height"), entry.get("width"), entry.get("scale", SCALES[0])
    if form is None:
        raise InvalidArgumentError(f"input '{declared.name}' of shape {list(declared.shape)} is not an image")
    if not (isinstance(height, int) and isinstance(width, int) and height > 0) or len(content) != height * width * 3:
        raise InvalidArgumentError(f"the image of input '{declared.name}' needs 3 bytes for each of its pixels")
    if scale not in SCALES:
        raise InvalidArgumentError(f"the scale of an image is one of {', '.join(SCALES)}, not {scale!r:.40}")
    colours = np.frombuffer(content, np.uint8).reshape(height, width, 3).astype(np.float32)
    if form["channels"] == 1:  # luma of ITU-R BT.601
        colours = (colours @ np.array([0.299, 0.587, 0.114], np.float32))[..., None]
    pixels = _scaled(colours, scale)
    if form["layout"] == "CHW":
        pixels = np.moveaxis(pixels, -1, 0)
    dtype = tensor_type(declared.datatype).dtype
    array = fp32_to_bf16(pixels) if declared.datatype == "BF16" else pixels.astype(dtype)
    return array.reshape((1,) * (len(declared.shape) - 3) + array.shape)


def _scaled(colours: np.ndarray, scale: str) -> np.ndarray:
    if scale == "0-1":
        return colours / np.float32(255)
    if scale == "-1-1":
        return colours / np.float32(127.5) - np.float32(1)
    if scale == "imagenet":
        mean, deviation = (_MEAN, _DEVIATION) if colours.shape[-1] == 3 else ((0.449,), (0.226,))
        return (colours / np.float32(255) - np.array(mean, np.float32)) / np.array(deviation, np.float32)
    return colours


def _shaped(array: np.ndarray, text: str, declared: TensorMetadata) -> Tensor:
    """The tensor in the shape of that text, else its own where the ranks agree, else the one that its size allows."""
    name, rank = declared.name, len(declared.shape)
    if array.size > _MOST_ELEMENTS:
        raise InvalidArgumentError(f"input '{name}' has {array.size} elements; a trial takes {_MOST_ELEMENTS} at most")
    if text.strip(" []"):
        try:
            shape = tuple(int(word) for word in re.split(r"[\s,x×]+", text.strip(" []")))
        except ValueError:
            raise InvalidArgumentError(f"the shape of input '{name}' is not a list of sizes: {text!r:.40}") from None
        if any(size < 0 for size in shape) or count_elements(shape, 1, name) != array.size:
            raise InvalidArgumentError(
                f"the shape {list(shape)} of input '{name}' does not fit its number of values, {array.size}"
            )
    elif array.ndim == rank:
        shape = array.shape
    elif array.ndim == rank - 1 and array.ndim > 1 and declared.shape[0] == -1:
        shape = (1, *array.shape)
    else:
        shape = deduced_shape(declared.shape, array.size, name)
    ordered = np.ascontiguousarray(array.reshape(shape))
    return Tensor(name, declared.datatype, shape, ordered)


def _decoded(text: str, name: str) -> bytes:
    try:
        return base64.b64decode(text, validate=True)
    except binascii.Error as error:
        raise InvalidArgumentError(f"the file of input '{name}' is not valid base64: {error}") from error
