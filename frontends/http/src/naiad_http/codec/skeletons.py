"""The JSON part of an infer request as a skeleton: all that can be known before the bytes behind it are seen."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from naiad.datatypes import TENSOR_TYPES, TensorType, tensor_type
from naiad.errors import InvalidArgumentError, UnsupportedError
from naiad.protocol.buffers import Buffer
from naiad.protocol.parameters import NO_PARAMETERS, Parameters
from naiad.types import Tensor
from naiad_http.codec.documents import as_array, as_boolean, as_object, as_string, as_unsigned, member, parse
from naiad_http.codec.forms import AS_BINARY, AS_JSON, AnswerForm, OutputForm
from naiad_http.codec.parameters import read_parameters
from naiad_http.codec.shapes import count_elements, read_shape
from naiad_http.codec.tensors import array_of_json

_SOURCES = "'data', 'binary_data_size' in 'parameters', 'shared_memory_region' in 'parameters'"
_NO_MEMBERS: Mapping[str, Any] = {}


class BinaryInput(NamedTuple):
    """An input whose `size` bytes come from `start` on in the part behind the JSON (a tuple: unpacked each request).

    `is_view` says that its array is nothing but a view on them: no BYTES, no BOOL, and aligned to its element size.
    """

    name: str
    datatype: str
    shape: tuple[int, ...]
    dtype: np.dtype
    elements: int
    start: int
    size: int
    is_view: bool


@dataclass(slots=True, eq=False)
class Skeleton:
    """A request without its `binary` tensors; `size` is how many bytes these take together.

    `tensors` are those that came as JSON. A skeleton without any serves any number of requests. Nobody changes one;
    freezing it would cost as much as reading a small tensor. `names` are those of all inputs, in order.
    """

    id: str
    parameters: Parameters
    names: Collection[str]
    tensors: dict[str, Tensor]
    binary: Sequence[BinaryInput]
    requested: tuple[str, ...]
    form: AnswerForm
    size: int


def read_skeleton(text: Buffer, model: str, limit: int) -> Skeleton:
    """The skeleton of a request's JSON; `model` is only told in errors, `limit` bounds the bytes of a JSON tensor.

    Raises InvalidArgumentError for everything that makes no sense whatever the model is.
    """
    document = as_object(parse(text), "request")
    parameters = NO_PARAMETERS
    if "parameters" in document:
        parameters = read_parameters(as_object(document["parameters"], "parameters"))
    names, tensors, binary = _read_inputs(as_array(member(document, "inputs", "the request"), "inputs"), model, limit)
    forms = _read_outputs(as_array(document["outputs"], "outputs")) if "outputs" in document else {}
    form = AnswerForm(AS_BINARY if parameters.binary_outputs else AS_JSON, forms)
    size = binary[-1].start + binary[-1].size if binary else 0
    request_id = as_string(document.get("id", ""), "id")
    return Skeleton(request_id, parameters, names, tensors, binary, tuple(forms), form, size)


def _read_inputs(
    given: list[Any], model: str, limit: int
) -> tuple[dict[str, None], dict[str, Tensor], list[BinaryInput]]:
    """The names of all inputs, and those that came as JSON apart from those that come as bytes."""
    names: dict[str, None] = {}
    tensors: dict[str, Tensor] = {}
    binary: list[BinaryInput] = []
    start = 0
    for each in given:
        found = _read_input(as_object(each, "inputs"), start, model, limit)
        name = found.name
        if name in names:
            raise InvalidArgumentError(f"input '{name}' already exists in request; name each input once")
        names[name] = None
        if isinstance(found, BinaryInput):
            binary.append(found)
            start += found.size
        else:
            tensors[name] = found
    return names, tensors, binary


def _read_input(given: Mapping[str, Any], start: int, model: str, limit: int) -> Tensor | BinaryInput:
    name = given.get("name")
    datatype = given.get("datatype")
    kind = TENSOR_TYPES.get(datatype) if type(datatype) is str else None
    shape = given.get("shape")
    if type(name) is not str or kind is None or shape is None:
        raise _nameless(given)
    sizes = read_shape(shape, name)
    count = count_elements(sizes, kind.itemsize, name)
    if "parameters" in given:
        size = _read_binary_size(given, name)
        if size is not None:
            _check_size(size, count, kind, name, model)
            is_view = kind.wire not in ("BYTES", "BOOL") and start % kind.itemsize == 0
            return BinaryInput(name, kind.wire, sizes, kind.dtype, count, start, size, is_view)
    if "data" not in given:
        raise _wrong_sources("But no field is set", name)
    return Tensor(name, kind.wire, sizes, array_of_json(given["data"], name, kind, sizes, count, limit))


def _nameless(given: Mapping[str, Any]) -> InvalidArgumentError:
    """What is wrong with an input that lacks its name, datatype or shape, or has something else in their place."""
    name = as_string(member(given, "name", "an input"), "name")
    tensor_type(as_string(member(given, "datatype", f"input '{name}'"), "datatype"))
    member(given, "shape", f"input '{name}'")
    return InvalidArgumentError(f"Unable to parse 'shape': input '{name}' has null in its place")


def _read_binary_size(given: Mapping[str, Any], name: str) -> int | None:
    """The `binary_data_size` of an input; None when its tensor is in `data`."""
    parameters = as_object(given["parameters"], "parameters of an input")
    if "shared_memory_region" in parameters:
        raise UnsupportedError(
            f"input '{name}' is in a shared memory region, which this server does not offer; send it as binary data"
        )
    if "binary_data_size" not in parameters:
        return None
    if "data" in given:
        raise _wrong_sources("Both 'data' and 'binary_data_size' are set", name)
    return as_unsigned(parameters["binary_data_size"], "binary_data_size")


def _wrong_sources(told: str, name: str) -> InvalidArgumentError:
    return InvalidArgumentError(f"Input must set only one of the following fields: {_SOURCES}. {told}: '{name}'")


def _check_size(size: int, count: int, kind: TensorType, name: str, model: str) -> None:
    if kind.itemsize and size != count * kind.itemsize:
        raise InvalidArgumentError(
            f"input byte size mismatch for input '{name}' for model '{model}'. "
            f"Expected {count * kind.itemsize}, got {size}"
        )


def _read_outputs(given: list[Any]) -> dict[str, OutputForm]:
    forms: dict[str, OutputForm] = {}
    for each in given:
        output = as_object(each, "outputs")
        name = as_string(member(output, "name", "an output"), "name")
        if name in forms:
            raise InvalidArgumentError(f"output '{name}' already exists in request; name each output once")
        forms[name] = _read_form(
            as_object(output.get("parameters", _NO_MEMBERS), f"parameters of output '{name}'"), name
        )
    return forms


def _read_form(parameters: Mapping[str, Any], name: str) -> OutputForm:
    if "shared_memory_region" in parameters:
        if "classification" in parameters:
            raise InvalidArgumentError(
                f"Output can't set both 'shared_memory_region' and 'classification', as '{name}' does"
            )
        raise UnsupportedError(
            f"output '{name}' is wanted in a shared memory region, which this server does not offer; "
            "ask for binary data"
        )
    classes = as_unsigned(parameters.get("classification", 0), "classification", 2**31 - 1)
    binary = as_boolean(parameters.get("binary_data", False), "binary_data")
    return OutputForm(binary, classes) if classes else (AS_BINARY if binary else AS_JSON)
