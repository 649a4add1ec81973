"""Trials of a model: from the form of its page to a request, and from responses to what the page shows. Pure."""

import json
from collections.abc import Mapping, Sequence
from math import prod
from typing import Any

import numpy as np

from naiad.errors import InvalidArgumentError
from naiad.reports import ModelMetadata, TensorMetadata
from naiad.types import ParameterValue, Request, Response
from naiad_dashboard.trial_values import SCALES, image_form, read_tensor
from naiad_kit.frontends.parameters import own_parameter
from naiad_tensors.datatypes import bf16_to_fp32
from naiad_tensors.tensors import Tensor

_SHOWN = 1000
"""The most elements of an output that are shown; a larger one is summarised."""

_STRINGS, _LETTERS = 100, 4000
_SAMPLED = 32
_CLASSES = 3


def form(metadata: ModelMetadata, version: int, decoupled: bool) -> dict[str, Any]:
    """What a page needs to make the form of a model."""
    return {
        "model": metadata.name,
        "version": version,
        "decoupled": decoupled,
        "scales": SCALES,
        "inputs": [
            {
                "name": each.name,
                "datatype": each.datatype,
                "shape": each.shape,
                "optional": each.optional,
                "image": image_form(each.shape, each.datatype),
                "sample": sample(each),
            }
            for each in metadata.inputs
        ],
    }


def sample(declared: TensorMetadata) -> str:
    """A value that fits the input: small ones are counted out, of large ones one number fills the shape."""
    count = prod(size if size > 0 else 1 for size in declared.shape)
    if declared.datatype == "BYTES":
        return json.dumps(["hello"] * min(count, _SAMPLED))
    if declared.datatype == "BOOL":
        return ", ".join(["true"] * count) if count <= _SAMPLED else "true"
    if count > _SAMPLED:
        return "0" if -1 not in declared.shape[1:] else ", ".join(["0"] * min(count, 4096))
    return ", ".join(str(number) for number in range(1, count + 1))


def read_request(document: Any, metadata: ModelMetadata, version: int) -> Request:
    """The request of a form: `inputs` by name (see `read_tensor`), and `parameters` as the protocol has them.

    Raises InvalidArgumentError.
    """
    if not isinstance(document, dict) or not isinstance(document.get("inputs"), dict):
        raise InvalidArgumentError("a trial is a JSON object with 'inputs', an object")
    declared = {each.name: each for each in metadata.inputs}
    inputs: dict[str, Tensor] = {}
    for name, entry in document["inputs"].items():
        if name not in declared:
            raise InvalidArgumentError(f"the model has no input '{name:.80}'; there are {', '.join(declared)}")
        if not isinstance(entry, dict):
            raise InvalidArgumentError(f"input '{name}' of a trial is a JSON object, which has the text or the file")
        inputs[name] = read_tensor(entry, declared[name])
    request = Request(metadata.name, inputs, version=version, id=str(document.get("id") or ""))
    _add_parameters(request, document.get("parameters") or {})
    return request


def response_document(response: Response, labels: Mapping[str, Sequence[str]]) -> dict[str, Any]:
    """What the page shows of a response: its outputs as text, which no browser rounds; `labels` are by output."""
    outputs = [output_document(each, labels.get(each.name, ())) for each in response.outputs.values()]
    document: dict[str, Any] = {"outputs": outputs}
    if response.parameters:
        document["parameters"] = {key: str(value)[:_LETTERS] for key, value in response.parameters.items()}
    if response.error is not None:
        document["error"] = str(response.error)
    return document


def output_document(tensor: Tensor, labels: Sequence[str] = ()) -> dict[str, Any]:
    """An output: its datatype and shape, its values as text, and with a label each the largest of them."""
    text = _strings(tensor) if tensor.datatype == "BYTES" else _numbers(tensor)
    document = {"name": tensor.name, "datatype": tensor.datatype, "shape": list(tensor.shape), "text": text}
    if labels and tensor.array.dtype.kind == "f" and tensor.array.size == len(labels):
        values = tensor.array.ravel()
        largest = np.argsort(-values)[:_CLASSES]
        document["classes"] = [{"label": labels[index], "value": f"{values[index]:.4g}"} for index in largest]
    return document


def _numbers(tensor: Tensor) -> str:
    array = bf16_to_fp32(tensor.array) if tensor.datatype == "BF16" else tensor.array
    return np.array2string(array, threshold=_SHOWN, separator=", ", max_line_width=100)


def _strings(tensor: Tensor) -> str:
    elements = [_string(each) for each in tensor.array.ravel()[:_STRINGS].tolist()]
    rest = tensor.array.size - len(elements)
    text = elements[0] if len(elements) == 1 and not rest else json.dumps(elements, ensure_ascii=False, indent=1)
    return f"{text}\n… and {rest} more" if rest else text


def _string(value: bytes) -> str:
    text = value[:_LETTERS].decode(errors="replace")
    return f"{text}… ({len(value)} bytes)" if len(value) > _LETTERS else text


def _add_parameters(request: Request, document: Any) -> None:
    if not isinstance(document, dict):
        raise InvalidArgumentError("the parameters of a trial are a JSON object")
    own: dict[str, ParameterValue] = {}
    for key, value in document.items():
        if key == "sequence_id":
            request.correlation_id = _checked(key, value, (str, int))
        elif key == "sequence_start":
            request.sequence_start = _checked(key, value, (bool,))
        elif key == "sequence_end":
            request.sequence_end = _checked(key, value, (bool,))
        elif key == "priority":
            request.priority = _checked(key, value, (int,))
        elif key == "timeout":
            request.timeout_microseconds = _checked(key, value, (int,))
        else:
            own[key] = own_parameter(key, value)
    request.parameters = own


def _checked(key: str, value: Any, kinds: tuple[type, ...]) -> Any:
    if type(value) not in kinds or (type(value) is int and not 0 <= value < 2**63):
        names = " or ".join(each.__name__ for each in kinds)
        raise InvalidArgumentError(f"the parameter '{key}' is {value!r:.40}, and must be {names}, from 0 up")
    return value
