"""Filling a model configuration from a signature, and holding what the user wrote against it."""

from collections.abc import Sequence
from dataclasses import replace

from naiad.datatypes import TENSOR_TYPES
from naiad.errors import ConfigError, Problem
from naiad_config import DataType, ModelConfig, ModelDynamicBatching, ModelInput, ModelOutput, ModelTransactionPolicy
from naiad_custom.annotations import Way
from naiad_custom.declaration import ArraySpec, Declaration
from naiad_custom.ragged import batch_inputs, check_batch_inputs, check_ragged, scattered_outputs, shape_dims
from naiad_custom.sequences import kept_inputs, kept_outputs
from naiad_custom.signature import Signature


def completed(config: ModelConfig, signature: Signature, declaration: Declaration) -> ModelConfig:
    """The configuration with everything that the function says.

    Raises ConfigError with every place where the configuration says something else.
    """
    problems: list[Problem] = []
    size = config.max_batch_size or declaration.max_batch_size
    if config.max_batch_size > 0 and declaration.max_batch_size == 0:
        message = f"it asks for batches, and '{signature.function}' is written for single requests"
        problems.append(Problem(message, "max_batch_size", hint=f"write @model(max_batch_size={size})"))
    inputs = _inputs(config, signature, problems, size > 0)
    check_batch_inputs(replace(config, input=inputs), signature, problems)
    outputs = _outputs(config, signature, problems, size > 0)
    policy = _policy(config.model_transaction_policy, signature, problems)
    if problems:
        raise ConfigError(problems)
    filled = replace(config, max_batch_size=size, input=inputs, output=outputs, model_transaction_policy=policy)
    if signature.way is not Way.ONCE:  # each request is a call of its own, so there is nothing to gather
        return filled
    schedulers = (config.dynamic_batching, config.sequence_batching, config.ensemble_scheduling)
    if size > 1 and not any(each is not None for each in schedulers):
        filled = replace(filled, dynamic_batching=ModelDynamicBatching())
    return filled


def _inputs(
    config: ModelConfig, signature: Signature, problems: list[Problem], batching: bool
) -> tuple[ModelInput, ...]:
    kept = kept_inputs(config, signature, problems) | batch_inputs(config)
    arguments = {argument.name: argument for argument in signature.arguments if argument.name not in kept}
    filled = []
    for index, each in enumerate(config.input):
        argument = arguments.pop(each.name, None)
        path = f"input[{index}]"
        if argument is None:
            problems.append(
                _unknown(path, each.name, "parameter", [each.name for each in signature.arguments], signature)
            )
            continue
        if each.optional and not argument.optional:
            message = (
                f"'{signature.function}' has no default for '{each.name}', and the configuration makes it optional"
            )
            problems.append(Problem(message, f"{path}.optional", hint="give the parameter a default"))
        if each.allow_ragged_batch:
            check_ragged(argument, path, problems)
        is_shape = each.is_shape_tensor and batching
        datatype, dims = _checked(each, argument.spec, path, problems, flat=each.allow_ragged_batch or is_shape)
        dims = shape_dims(each, argument.spec, path, problems) if is_shape else dims
        filled.append(replace(each, data_type=datatype, dims=dims, optional=each.optional or argument.optional))
    added = [
        ModelInput(name=name, data_type=_enum(left.spec), dims=left.spec.dims, optional=left.optional)
        for name, left in arguments.items()
    ]
    return (*filled, *added)


def _outputs(
    config: ModelConfig, signature: Signature, problems: list[Problem], batching: bool
) -> tuple[ModelOutput, ...]:
    kept, scattered = kept_outputs(config, signature, problems), scattered_outputs(config)
    results = {result.name: result for result in signature.results if result.name not in kept}
    filled = []
    for index, each in enumerate(config.output):
        result = results.pop(each.name, None)
        path = f"output[{index}]"
        if result is None:
            problems.append(_unknown(path, each.name, "output", [each.name for each in signature.results], signature))
            continue
        is_shape = each.is_shape_tensor and batching
        datatype, dims = _checked(each, result.spec, path, problems, flat=each.name in scattered or is_shape)
        dims = shape_dims(each, result.spec, path, problems) if is_shape else dims
        filled.append(replace(each, data_type=datatype, dims=dims))
    added = [ModelOutput(name=name, data_type=_enum(left.spec), dims=left.spec.dims) for name, left in results.items()]
    return (*filled, *added)


def _policy(
    given: ModelTransactionPolicy | None, signature: Signature, problems: list[Problem]
) -> ModelTransactionPolicy | None:
    if signature.way is Way.ONCE:
        return given
    if given is not None and not given.decoupled:
        message = f"'{signature.function}' gives any number of responses, and the configuration asks for exactly one"
        problems.append(Problem(message, "model_transaction_policy.decoupled", hint="write true, or drop the policy"))
    return ModelTransactionPolicy(decoupled=True)


def _checked(
    given: ModelInput | ModelOutput, spec: ArraySpec, path: str, problems: list[Problem], flat: bool
) -> tuple[DataType, tuple[int, ...]]:
    """Datatype and dims to use, after holding those that are given against the annotation.

    The dims of a `flat` tensor are those of a request, and its array holds all requests of a batch in one piece.
    """
    wanted = _enum(spec)
    hint = f"the annotation is {spec}; change one of the two"
    if given.data_type not in (DataType.TYPE_INVALID, wanted):
        message = f"'{given.name}' is {given.data_type.name} here and {wanted.name} in the code"
        problems.append(Problem(message, f"{path}.data_type", hint=hint))
    seen = given.dims if given.reshape is None else given.reshape.shape
    if (given.dims or given.reshape is not None) and not flat and not _fits(seen, spec.dims):
        message = f"'{given.name}' has dims {list(seen)} here and {list(spec.dims)} in the code"
        problems.append(Problem(message, f"{path}.dims", hint=hint))
    return wanted, given.dims or spec.dims


def _fits(given: Sequence[int], wanted: Sequence[int]) -> bool:
    return len(given) == len(wanted) and all(there in (-1, here) for here, there in zip(given, wanted, strict=True))


def _unknown(path: str, name: str, what: str, known: Sequence[str], signature: Signature) -> Problem:
    message = f"'{signature.function}' has no {what} '{name}'"
    return Problem(message, f"{path}.name", hint=f"it has {', '.join(known)}")


def _enum(spec: ArraySpec) -> DataType:
    return TENSOR_TYPES[spec.datatype].config
