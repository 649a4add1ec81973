"""Decoder of the `outputs` of a request: names and forms of the requested outputs."""

from collections.abc import Sequence
from typing import Any

from naiad.errors import InvalidArgumentError
from naiad_grpc.codec.forms import OutputForm
from naiad_grpc.codec.parameters import size_of
from naiad_grpc.codec.references import Reference, read_reference

_CLASSES = "classification"


def read_outputs(
    messages: Sequence[Any],
) -> tuple[tuple[str, ...], dict[str, OutputForm], tuple[tuple[str, Reference], ...]]:
    """The names of the outputs, the forms of classified outputs, and the references of those in shared memory.

    Raises InvalidArgumentError for a duplicate name and for invalid parameters.
    """
    names: dict[str, None] = {}
    forms: dict[str, OutputForm] = {}
    shared: list[tuple[str, Reference]] = []
    for output in messages:
        name: str = output.name
        if name in names:
            raise InvalidArgumentError(f"output '{name}' already exists in request; name each output once")
        names[name] = None
        parameters = output.parameters
        if not parameters:
            continue
        tensor = f"requested output '{name}'"
        classes = size_of(parameters[_CLASSES], _CLASSES, f" for {tensor}") if _CLASSES in parameters else 0
        reference = read_reference(parameters, tensor)
        if reference is not None:
            if classes:
                raise InvalidArgumentError(
                    f"Output can't set both 'shared_memory_region' and '{_CLASSES}', as '{name}' does"
                )
            shared.append((name, reference))
        elif classes:
            forms[name] = OutputForm(classes)
    return tuple(names), forms, tuple(shared)
