"""Which tensor of a configuration is which argument or result of a model that knows them by their order. Pure."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from naiad.errors import ConfigError, Problem

_NUMBERED = re.compile(r".+__(\d+)")


@dataclass(frozen=True, slots=True)
class Named:
    """A tensor of the configuration: its name and its key there (`input[0]`); `numbered` must say its place itself."""

    name: str
    path: str
    numbered: bool = False


def places(tensors: Sequence[Named], known: Mapping[str, int], model: str, kind: str) -> dict[str, int]:
    """The place of each tensor, counted from 0.

    By the names that the model itself knows (`known`), when it knows all of them; else by the number in
    `<name>__<number>`, when all have one; else in the order of the configuration. Raises ConfigError for two tensors in
    one place, and for a `numbered` tensor without a number; `model` and `kind` (`input`, `output`) are told there.
    """
    if all(tensor.name in known for tensor in tensors):
        return _checked({tensor.name: known[tensor.name] for tensor in tensors}, tensors, model, kind)
    found = {tensor.name: _NUMBERED.fullmatch(tensor.name) for tensor in tensors}
    if all(found.values()):
        numbers = {name: int(match[1]) for name, match in found.items() if match is not None}
        return _checked(numbers, tensors, model, kind)
    for tensor in tensors:
        if tensor.numbered and found[tensor.name] is None:
            raise ConfigError([_unnumbered(tensor, model, kind)])
    return {tensor.name: place for place, tensor in enumerate(tensors)}


def in_order(tensors: Sequence[Named], known: Mapping[str, int]) -> bool:
    """Whether nothing but the order of the configuration says which tensor is which."""
    return not all(tensor.name in known for tensor in tensors) and not all(
        _NUMBERED.fullmatch(tensor.name) for tensor in tensors
    )


def _checked(found: dict[str, int], tensors: Sequence[Named], model: str, kind: str) -> dict[str, int]:
    taken: dict[int, str] = {}
    for tensor in tensors:
        place = found[tensor.name]
        if place in taken:
            raise ConfigError(
                [
                    Problem(
                        f"{kind}s '{taken[place]}' and '{tensor.name}' of model '{model}' are both number {place}",
                        tensor.path,
                        hint="give each a place of its own",
                    )
                ]
            )
        taken[place] = tensor.name
    return found


def _unnumbered(tensor: Named, model: str, kind: str) -> Problem:
    if "state" in tensor.path:
        message = (
            f"PyTorch model '{model}' is using sequence batching with state but state '{tensor.name}' does not follow "
            "the <name>__<index> naming convention"
        )
    else:
        message = f"{kind} '{tensor.name}' of model '{model}' does not follow <name>__<index> naming convention"
    return Problem(message, tensor.path, hint=f"call it {tensor.name}__N, where N is its place in the model, from 0 on")
