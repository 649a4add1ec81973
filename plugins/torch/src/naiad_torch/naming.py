"""Tensor naming: maps tensors of a configuration to positional arguments and results. Pure."""

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


def indices_of(tensors: Sequence[Named], known: Mapping[str, int], model: str, kind: str) -> dict[str, int]:
    """The place of each tensor, counted from 0.

    By the names that the model itself knows (`known`), when it knows all of them; else by the number in
    `<name>__<number>`, when all have one; else in the order of the configuration. A `numbered` tensor is not asked for
    that: each has a name that is known or a number. Raises ConfigError for two tensors in one place, and for a
    `numbered` tensor with neither; `model` and `kind` (`input`, `output`) appear in the error.
    """
    free = [tensor for tensor in tensors if not tensor.numbered]
    indices = _by_number(free) if not _all_known(free, known) else {tensor.name: known[tensor.name] for tensor in free}
    if len(indices) < len(free):
        indices = {tensor.name: index for index, tensor in enumerate(free)}
    for tensor in tensors:
        if tensor.numbered:
            index = known.get(tensor.name, _number(tensor.name))
            if index is None:
                raise ConfigError([_unnumbered(tensor, model, kind)])
            indices[tensor.name] = index
    return _checked(indices, tensors, model, kind)


def in_order(tensors: Sequence[Named], known: Mapping[str, int]) -> bool:
    """Whether nothing but the order of the configuration says which tensor is which."""
    free = [tensor for tensor in tensors if not tensor.numbered]
    return len(free) > 1 and not _all_known(free, known) and len(_by_number(free)) < len(free)


def _all_known(tensors: Sequence[Named], known: Mapping[str, int]) -> bool:
    return all(tensor.name in known for tensor in tensors)


def _by_number(tensors: Sequence[Named]) -> dict[str, int]:
    """The places of those that have one in their names."""
    numbers = {tensor.name: _number(tensor.name) for tensor in tensors}
    return {name: number for name, number in numbers.items() if number is not None}


def _number(name: str) -> int | None:
    match = _NUMBERED.fullmatch(name)
    return int(match[1]) if match is not None else None


def _checked(indices: dict[str, int], tensors: Sequence[Named], model: str, kind: str) -> dict[str, int]:
    taken: dict[int, str] = {}
    for tensor in tensors:
        index = indices[tensor.name]
        if index in taken:
            raise ConfigError(
                [
                    Problem(
                        f"{kind}s '{taken[index]}' and '{tensor.name}' of model '{model}' are both number {index}",
                        tensor.path,
                        hint="give each a place of its own",
                    )
                ]
            )
        taken[index] = tensor.name
    return indices


def _unnumbered(tensor: Named, model: str, kind: str) -> Problem:
    if "state" in tensor.path:
        message = (
            f"PyTorch model '{model}' is using sequence batching with state but state '{tensor.name}' does not follow "
            "the <name>__<index> naming convention"
        )
    else:
        message = f"{kind} '{tensor.name}' of model '{model}' does not follow <name>__<index> naming convention"
    return Problem(message, tensor.path, hint=f"call it {tensor.name}__N, where N is its place in the model, from 0 on")
