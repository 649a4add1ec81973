"""Validation of an ensemble against the models of its steps; naiad-config checks the rules that need no model."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from naiad.errors import Problem
from naiad_config import DataType, ModelConfig, ModelInput, ModelOutput
from naiad_config.paths import element, entry
from naiad_scheduler_ensemble.graph import inner_dims, is_decoupled, scopes_of, steps_of
from naiad_scheduler_ensemble.shapes import matches


@dataclass(frozen=True, slots=True)
class _Seen:
    """A tensor of an ensemble as one model sees it."""

    model: str
    datatype: DataType
    dims: tuple[int, ...]
    batching: bool

    @property
    def full(self) -> tuple[int, ...]:
        """The dims with the batch dimension, where the model has one."""
        return (-1, *self.dims) if self.batching else self.dims


def problems(config: ModelConfig, models: Sequence[ModelConfig]) -> Iterator[Problem]:
    """All that does not fit together; each problem names the step that it shows in."""
    yield from _batch_sizes(config, models)
    yield from _names(config, models)
    yield from _tensors(config, models)
    yield from _origins(config, models)
    yield from _cache(config, models)


def _batch_sizes(config: ModelConfig, models: Sequence[ModelConfig]) -> Iterator[Problem]:
    """A model without a batch dimension is no problem: what it gets and gives is adapted."""
    for index, model in enumerate(models):
        if 0 < model.max_batch_size < config.max_batch_size:
            message = (
                f"ensemble {config.name} allows maximum batch size {config.max_batch_size}, but it contains model "
                f"{model.name} which only allows maximum batch size to be {model.max_batch_size}"
            )
            hint = f"set max_batch_size of '{config.name}' to {model.max_batch_size}, or raise that of '{model.name}'"
            yield Problem(message, _path(index), hint=hint)


def _names(config: ModelConfig, models: Sequence[ModelConfig]) -> Iterator[Problem]:
    for index, (step, model) in enumerate(zip(steps_of(config), models, strict=True)):
        inputs, outputs = {each.name: each for each in model.input}, [each.name for each in model.output]
        for name, tensor in step.input_map.items():
            if name not in inputs:
                message = f"{_about(config, tensor)} is mapping to non-existing input {name} in model {model.name}"
                yield Problem(message, entry(f"{_path(index)}.input_map", name), hint=_listed("input", inputs))
        for name, tensor in step.output_map.items():
            if name not in outputs:
                message = f"{_about(config, tensor)} is mapped from non-existing output {name} in model {model.name}"
                yield Problem(message, entry(f"{_path(index)}.output_map", name), hint=_listed("output", outputs))
        for name, model_input in inputs.items():
            if name not in step.input_map and not model_input.optional:
                message = (
                    f"in ensemble {config.name}, input {name} in model {model.name} is not mapped to any ensemble "
                    "tensors"
                )
                yield Problem(message, f"{_path(index)}.input_map", hint=f"add key: '{name}' to the input_map")


def _tensors(config: ModelConfig, models: Sequence[ModelConfig]) -> Iterator[Problem]:
    """Every view of a tensor is held against the first one: the ensemble's own, else that of its first step.

    A `reshape` of the ensemble's own tensors counts for its steps.
    """
    own: list[ModelInput | ModelOutput] = [*config.input, *config.output]
    first = {each.name: replace(_seen(config, each), dims=inner_dims(each)) for each in own}
    for index, (step, model) in enumerate(zip(steps_of(config), models, strict=True)):
        yield from _views(config, first, step.input_map, model, model.input, f"{_path(index)}.input_map")
        yield from _views(config, first, step.output_map, model, model.output, f"{_path(index)}.output_map")


def _views(
    config: ModelConfig,
    first: dict[str, _Seen],
    mapped: Mapping[str, str],
    model: ModelConfig,
    declared: Sequence[ModelInput] | Sequence[ModelOutput],
    path: str,
) -> Iterator[Problem]:
    by_name = {each.name: each for each in declared}
    for name, tensor in mapped.items():
        if name in by_name:
            seen = _seen(model, by_name[name])
            difference = _difference(first.setdefault(tensor, seen), seen)
            if difference:
                yield Problem(f"{_about(config, tensor)}: {difference}", entry(path, name))


def _difference(one: _Seen, other: _Seen) -> str:
    if one.datatype != other.datatype:
        kinds = f"{one.datatype.name} is inferred from model {one.model} while {other.datatype.name} is inferred"
        return f"inconsistent data type: {kinds} from model {other.model}"
    if matches(one.dims, other.dims) or matches(one.full, other.full):
        return ""
    shapes = f"{_text(one.full)} is inferred from model {one.model} while {_text(other.full)} is inferred"
    return f"inconsistent shape: {shapes} from model {other.model}"


def _origins(config: ModelConfig, models: Sequence[ModelConfig]) -> Iterator[Problem]:
    for index, origins in enumerate(scopes_of(config, models)):
        if len(origins) > 1:
            step = steps_of(config)[index]
            message = f"in ensemble {config.name}, step of model '{step.model_name}' receives inputs originated from"
            hint = " and ".join(f"'{models[origin].name}' (step {origin})" for origin in sorted(origins))
            yield Problem(f"{message} different decoupled models", _path(index), hint=f"they come from {hint}")


def _cache(config: ModelConfig, models: Sequence[ModelConfig]) -> Iterator[Problem]:
    if config.response_cache is None or not config.response_cache.enable:
        return
    for index, model in enumerate(models):
        sequences = model.sequence_batching is not None
        if is_decoupled(model) or sequences:
            why = "sequence batching scheduler" if sequences else "'decoupled' transaction policy"
            message = (
                f"Response Cache does not currently support model {config.name} with {why}. "
                "Please disable the response cache."
            )
            yield Problem(message, "response_cache.enable", hint=f"step {index} is model '{model.name}'")


def _seen(model: ModelConfig, tensor: ModelInput | ModelOutput) -> _Seen:
    return _Seen(model.name, tensor.data_type, tuple(tensor.dims), model.max_batch_size > 0)


def _about(config: ModelConfig, tensor: str) -> str:
    return f"in ensemble {config.name}, ensemble tensor {tensor}"


def _path(index: int) -> str:
    return element("ensemble_scheduling.step", index)


def _listed(kind: str, names: Sequence[str] | Mapping[str, ModelInput]) -> str:
    return f"its {kind}s are {', '.join(names)}"


def _text(dims: tuple[int, ...]) -> str:
    return f"[{','.join(map(str, dims))}]"
