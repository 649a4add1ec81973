"""Auto-completion from a library's declarations, and checks of the configuration against them. Pure."""

from collections.abc import Mapping, Sequence
from dataclasses import fields, replace
from typing import TypeVar

from naiad.errors import ConfigError, Problem
from naiad_config import DataType, ModelConfig, ModelDynamicBatching, ModelInput, ModelOutput
from naiad_kit.backends.interface import reserved_inputs, shape_text

_Entry = TypeVar("_Entry", ModelInput, ModelOutput)
_ITS_OWN = ("name", "platform", "backend", "default_model_filename", "max_batch_size", "input", "output", "parameters")
_SCHEDULERS = ("dynamic_batching", "sequence_batching", "ensemble_scheduling")


def completed(config: ModelConfig, library: ModelConfig) -> ModelConfig:
    """The configuration, with what it omits filled from the library, and `dynamic_batching` for a library that batches.

    Raises ConfigError with every place where the two contradict each other.
    """
    problems: list[Problem] = []
    if config.max_batch_size > library.max_batch_size:
        message = f"the library takes batches of at most {library.max_batch_size}, and this is {config.max_batch_size}"
        problems.append(Problem(message, "max_batch_size", hint=f"write {library.max_batch_size}, or leave it out"))
    size = config.max_batch_size or (0 if config.input and config.output else library.max_batch_size)
    filled = replace(_with_settings(config, library), max_batch_size=size)
    kept = reserved_inputs(filled)
    inputs = _filled("input", config.input, [each for each in library.input if each.name not in kept], problems)
    outputs = _filled("output", config.output, library.output, problems)
    if problems:
        raise ConfigError(problems)
    written = {each.name for each in config.input}
    inputs += [each for each in library.input if each.name not in written | kept]
    filled = replace(filled, input=tuple(inputs), output=tuple(outputs or library.output))
    if size > 1 and not any(getattr(filled, key) is not None for key in _SCHEDULERS):
        return replace(filled, dynamic_batching=ModelDynamicBatching())
    return filled


def _with_settings(config: ModelConfig, library: ModelConfig) -> ModelConfig:
    """The configuration, with all other declarations of the library filled in."""
    blank = ModelConfig()
    scheduled = any(getattr(config, key) is not None for key in _SCHEDULERS)
    changes: dict[str, object] = {
        each.name: getattr(library, each.name)
        for each in fields(ModelConfig)
        if each.name not in _ITS_OWN
        and getattr(config, each.name) == getattr(blank, each.name)
        and not (scheduled and each.name in _SCHEDULERS)
    }
    return replace(config, parameters={**library.parameters, **config.parameters}, **changes)  # type: ignore[arg-type]


def _filled(kind: str, written: Sequence[_Entry], offered: Sequence[_Entry], problems: list[Problem]) -> list[_Entry]:
    """What the user wrote, its gaps filled from what the library offers."""
    known: Mapping[str, _Entry] = {each.name: each for each in offered}
    completed = []
    for index, entry in enumerate(written):
        path, own = f"{kind}[{index}]", known.get(entry.name)
        if own is None:
            hint = f"it has {', '.join(known) or 'none'}"
            problems.append(Problem(f"the library has no {kind} '{entry.name}'", f"{path}.name", hint=hint))
            continue
        if entry.data_type not in (DataType.TYPE_INVALID, own.data_type):
            message = f"'{entry.name}' is {entry.data_type.name} here and {own.data_type.name} in the library"
            problems.append(Problem(message, f"{path}.data_type", hint=f"write {own.data_type.name}"))
        seen, dims = _dims(entry), _dims(own)
        if seen and not _fit(seen, dims):
            message = f"'{entry.name}' has dims {shape_text(seen)} here and {shape_text(dims)} in the library"
            problems.append(Problem(message, f"{path}.dims", hint=f"write dims: {shape_text(dims)}"))
        entry = replace(entry, data_type=own.data_type)
        completed.append(entry if entry.dims else replace(entry, dims=own.dims, reshape=entry.reshape or own.reshape))
    return completed


def _dims(entry: ModelInput | ModelOutput) -> tuple[int, ...]:
    """The dims as the model sees them."""
    return tuple(entry.dims if entry.reshape is None else entry.reshape.shape)


def _fit(one: tuple[int, ...], other: tuple[int, ...]) -> bool:
    return len(one) == len(other) and all(
        own == declared or -1 in (own, declared) for own, declared in zip(one, other, strict=True)
    )
