"""The `outputs` of a request: which ones are wanted, and how."""

from collections.abc import Sequence
from typing import Any

from naiad.errors import InvalidArgumentError
from naiad_grpc.codec.forms import OutputForm
from naiad_grpc.codec.parameters import size_of
from naiad_grpc.codec.references import Reference, read_reference

_CLASSES = "classification"


def read_outputs(
    given: Sequence[Any],
) -> tuple[tuple[str, ...], dict[str, OutputForm], tuple[tuple[str, Reference], ...]]:
    """The names of the outputs, the forms of those that are classified, and where those in shared memory go.

    Raises InvalidArgumentError for a name given twice, and for parameters that make no sense.
    """
    names: dict[str, None] = {}
    forms: dict[str, OutputForm] = {}
    shared: list[tuple[str, Reference]] = []
    for output in given:
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
