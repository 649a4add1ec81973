"""Validation of a configuration by all rules that need no framework; reports all problems at once."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from itertools import chain, islice
from pathlib import Path

from naiad_config.errors import MOST_PROBLEMS, Problem
from naiad_config.lexer import Position
from naiad_config.model import ModelConfig
from naiad_config.paths import position_of
from naiad_config.validation import (
    batch_tensors,
    batching,
    ensembles,
    files,
    general,
    instances,
    sequences,
    states,
    tensors,
    warmups,
)

__all__ = ["misnamed", "problems", "unexplained", "with_positions"]

_RULES: tuple[Callable[[ModelConfig], Iterator[Problem]], ...] = (
    general.problems,
    tensors.problems,
    batch_tensors.problems,
    batching.problems,
    sequences.problems,
    states.problems,
    ensembles.problems,
    instances.problems,
    warmups.problems,
    files.problems,
)
_RULES_OF_COMPLETE: tuple[Callable[[ModelConfig], Iterator[Problem]], ...] = (
    general.missing,
    tensors.missing,
    batch_tensors.unknown_names,
    batching.sizes_without_batching,
    warmups.unlike_inputs,
)


def problems(
    config: ModelConfig,
    *,
    positions: Mapping[str, Position] | None = None,
    file: str = "",
    model_directory: Path | None = None,
    complete: bool = True,
) -> tuple[Problem, ...]:
    """What is wrong in a configuration, in the order of its topics; () when it is valid.

    The problems end with the first that a ConfigError does not list any more.

    `positions` are those of `parse_text_with_positions`, so that each problem names line and column in `file`. With
    `model_directory` also the files that the configuration names are checked. `complete=False` is for a configuration
    as it was written, which detection, the backend and normalisation have still to fill: what is missing there is no
    problem yet. Check that before a backend sees the configuration: afterwards no file name leaves its folder.
    """
    rules = (*_RULES, *_RULES_OF_COMPLETE) if complete else _RULES
    problems_found = chain.from_iterable(rule(config) for rule in rules)
    if model_directory is not None:
        problems_found = chain(problems_found, files.missing(config, model_directory))
    return with_positions(islice(problems_found, MOST_PROBLEMS + 1), positions or {}, file)


def misnamed(config: ModelConfig, directory: str) -> tuple[Problem, ...]:
    """The problem of a model whose configured name is not the name of its folder; () when it is, or is left open."""
    if config.name in ("", directory):
        return ()
    message = f"unexpected directory name '{directory}' for model '{config.name}', directory name must equal model name"
    return (Problem(message, "name", hint=f"rename the folder, or set name to '{directory}', or leave it out"),)


def unexplained(problems_found: Iterable[Problem], mistakes: Iterable[Problem]) -> tuple[Problem, ...]:
    """The problems but for those of a key that could not be read as it was meant, or of what is around it.

    None where there are more mistakes than are listed: what the others explain is not known.
    """
    misread = [mistake.path for mistake in mistakes]
    if len(misread) > MOST_PROBLEMS:
        return ()
    return tuple(problem for problem in problems_found if not any(_is_about(problem.path, path) for path in misread))


def _is_about(path: str, misread: str) -> bool:
    """Whether one of the two is the other, or lies around it."""
    shorter, longer = sorted((path, misread), key=len)
    return bool(shorter) and longer.startswith(shorter) and longer[len(shorter) :][:1] in ("", ".", "[")


def with_positions(
    problems_found: Iterable[Problem], positions: Mapping[str, Position], file: str = ""
) -> tuple[Problem, ...]:
    """The same problems with the positions of their keys in `file`; a problem that has a position keeps it."""
    return tuple(problem if problem.line else _with_position(problem, positions, file) for problem in problems_found)


def _with_position(problem: Problem, positions: Mapping[str, Position], file: str) -> Problem:
    line, column = position_of(problem.path, positions)
    return replace(problem, file=problem.file or file, line=line, column=column)
