"""Recorded bodies of inference requests to samples."""

import json
from collections.abc import Mapping
from math import prod
from pathlib import Path
from typing import Any

import numpy as np
from naiad.backend import ModelContext
from naiad.errors import InvalidArgumentError
from naiad.types import Request
from naiad_kit.buffers import bool_array, object_array, unpack_strings
from naiad_tensors.datatypes import tensor_type
from naiad_tensors.tensors import Tensor
from naiad_warmup.samples import WarmupSample

FOLDER = "requests"
"""Where the files are, in the model's folder `warmup`."""


def samples_of(context: ModelContext) -> list[WarmupSample]:
    """A sample for each recorded request, in the order of the files' names; none without the folder.

    Raises InvalidArgumentError naming the file that is not a request.
    """
    folder = context.model_directory / "warmup" / FOLDER
    paths = sorted(path for path in folder.glob("*") if path.suffix in (".json", ".bin"))
    return [WarmupSample(path.name, [_request(path, context)]) for path in paths]


def _request(path: Path, context: ModelContext) -> Request:
    try:
        return request_of(path.read_bytes(), context.config.name, context.version)
    except OSError as error:
        raise InvalidArgumentError(f"the recorded request '{path}' cannot be read: {error.strerror}") from error
    except (InvalidArgumentError, ValueError, KeyError, TypeError) as error:
        message = str(error) if isinstance(error, InvalidArgumentError) else f"{type(error).__name__}: {error}"
        raise InvalidArgumentError(f"'{path}' is not an inference request that can be replayed: {message}") from error


def request_of(body: bytes, model: str, version: int) -> Request:
    """The request in a body: JSON, with the binary tensors, if there are any, right behind it."""
    end = _end_of_json(body)
    document = json.loads(body[:end])
    rest = memoryview(body)[end:]
    inputs: dict[str, Tensor] = {}
    for item in document["inputs"]:
        tensor, taken = _tensor(item, rest, model)
        inputs[tensor.name] = tensor
        rest = rest[taken:]
    if bytes(rest).strip():
        raise InvalidArgumentError(f"{len(rest)} bytes follow the last tensor")
    parameters = document.get("parameters", {})
    return Request(
        model,
        inputs,
        version,
        str(document.get("id", "")),
        tuple(each["name"] for each in document.get("outputs", ())),
        {key: value for key, value in parameters.items() if key not in _KNOWN},
        correlation_id=parameters.get("sequence_id", 0),
        sequence_start=parameters.get("sequence_start", False),
        sequence_end=parameters.get("sequence_end", False),
    )


_KNOWN = ("sequence_id", "sequence_start", "sequence_end", "priority", "timeout", "binary_data_output")


def _end_of_json(body: bytes) -> int:
    """Where the JSON object at the start of the body ends: over HTTP a header says so, which a file lacks."""
    depth, quoted, escaped = 0, False, False
    for offset, byte in enumerate(body):
        if quoted:
            quoted = escaped or byte != ord('"')
            escaped = not escaped and byte == ord("\\")
        elif byte == ord('"'):
            quoted = True
        elif byte in b"{[":
            depth += 1
        elif byte in b"}]":
            depth -= 1
            if not depth:
                return offset + 1
    raise InvalidArgumentError("its JSON has no end")


def _tensor(value: Mapping[str, Any], rest: memoryview, model: str) -> tuple[Tensor, int]:
    """A tensor, and how many bytes of `rest` it took."""
    name, shape, kind = value["name"], tuple(value["shape"]), tensor_type(value["datatype"])
    parameters = value.get("parameters", {})
    if "shared_memory_region" in parameters:
        raise InvalidArgumentError(f"input '{name}' is in shared memory, which is not recorded")
    size = parameters.get("binary_data_size")
    if size is None:
        flat = np.array(value["data"], dtype=object).ravel().tolist()
        strings = kind.wire == "BYTES"
        array = object_array([_bytes(each) for each in flat]) if strings else np.array(flat, dtype=kind.dtype)
        return Tensor(name, kind.wire, shape, array.reshape(shape)), 0
    content = bytes(rest[:size])
    if len(content) < size:
        raise InvalidArgumentError(f"input '{name}' needs {size} bytes behind the JSON, and {len(content)} are left")
    if kind.wire == "BYTES":
        array = unpack_strings(content, prod(shape), name, model).reshape(shape)
    elif kind.wire == "BOOL":
        array = bool_array(shape, content)
    else:
        array = np.frombuffer(content, kind.dtype).reshape(shape)
    return Tensor(name, kind.wire, shape, array), size


def _bytes(element: Any) -> bytes:
    if not isinstance(element, str):
        raise InvalidArgumentError(f"{element!r} is not a string")
    return element.encode()
