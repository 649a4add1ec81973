"""Decoder of the `outputs` of an infer request: the names of the requested outputs and their forms."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from naiad.errors import InvalidArgumentError
from naiad_http.codec.documents import as_boolean, as_object, as_string, as_unsigned, member
from naiad_http.codec.forms import AS_BINARY, AS_JSON, OutputForm
from naiad_http.codec.inputs import read_location

_NO_PARAMETERS: Mapping[str, Any] = {}


class SharedOutput(NamedTuple):
    """An output to write to the shared memory region that has the name `region` at that time."""

    name: str
    region: str
    offset: int
    byte_size: int


class Outputs(NamedTuple):
    """The names of all listed outputs, in order; the forms of those in the response, and those in shared memory."""

    names: tuple[str, ...] = ()
    forms: Mapping[str, OutputForm] = {}
    shared: Sequence[SharedOutput] = ()


def read_outputs(entries: list[Any]) -> Outputs:
    """The outputs that the list requests. Raises InvalidArgumentError."""
    names: dict[str, None] = {}
    forms: dict[str, OutputForm] = {}
    shared: list[SharedOutput] = []
    for each in entries:
        output = as_object(each, "outputs")
        name = as_string(member(output, "name", "an output"), "name")
        if name in names:
            raise InvalidArgumentError(f"output '{name}' already exists in request; name each output once")
        names[name] = None
        parameters = as_object(output.get("parameters", _NO_PARAMETERS), f"parameters of output '{name}'")
        if "shared_memory_region" in parameters:
            shared.append(_read_shared(parameters, name))
        else:
            forms[name] = _read_form(parameters)
    return Outputs(tuple(names), forms, shared)


def _read_form(parameters: Mapping[str, Any]) -> OutputForm:
    classes = as_unsigned(parameters.get("classification", 0), "classification", 2**31 - 1)
    binary = as_boolean(parameters.get("binary_data", False), "binary_data")
    return OutputForm(binary, classes) if classes else (AS_BINARY if binary else AS_JSON)


def _read_shared(parameters: Mapping[str, Any], name: str) -> SharedOutput:
    other = ""
    if "classification" in parameters:
        other = "classification"
    elif as_boolean(parameters.get("binary_data", False), "binary_data"):
        other = "binary_data"
    if other:
        raise InvalidArgumentError(f"Output can't set both 'shared_memory_region' and '{other}', as '{name}' does")
    return SharedOutput(name, *read_location(parameters))
