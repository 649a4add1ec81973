"""Auto-completion: fills a model configuration from a signature, and reports contradictions between the two."""

from collections.abc import Sequence
from dataclasses import replace

from naiad.errors import ConfigError, Problem
from naiad_config import DataType, ModelConfig, ModelDynamicBatching, ModelInput, ModelOutput, ModelTransactionPolicy
from naiad_custom.annotations import Way
from naiad_custom.declaration import ArraySpec, Declaration
from naiad_custom.ragged import batch_inputs, check_batch_inputs, check_ragged, scattered_outputs, shape_dims
from naiad_custom.sequences import kept_inputs, kept_outputs
from naiad_custom.signature import Signature
from naiad_tensors.datatypes import TENSOR_TYPES


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
        ModelInput(name=name, data_type=_enum(parameter.spec), dims=parameter.spec.dims, optional=parameter.optional)
        for name, parameter in arguments.items()
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
    added = [
        ModelOutput(name=name, data_type=_enum(parameter.spec), dims=parameter.spec.dims)
        for name, parameter in results.items()
    ]
    return (*filled, *added)


def _policy(
    policy: ModelTransactionPolicy | None, signature: Signature, problems: list[Problem]
) -> ModelTransactionPolicy | None:
    if signature.way is Way.ONCE:
        return policy
    if policy is not None and not policy.decoupled:
        message = f"'{signature.function}' gives any number of responses, and the configuration asks for exactly one"
        problems.append(Problem(message, "model_transaction_policy.decoupled", hint="write true, or drop the policy"))
    return ModelTransactionPolicy(decoupled=True)


def _checked(
    tensor: ModelInput | ModelOutput, spec: ArraySpec, path: str, problems: list[Problem], flat: bool
) -> tuple[DataType, tuple[int, ...]]:
    """Datatype and dims of a tensor: those of the configuration, checked against the annotation.

    The dims of a `flat` tensor are those of a request, and its array holds all requests of a batch in one piece.
    """
    data_type = _enum(spec)
    hint = f"the annotation is {spec}; change one of the two"
    if tensor.data_type not in (DataType.TYPE_INVALID, data_type):
        message = f"'{tensor.name}' is {tensor.data_type.name} here and {data_type.name} in the code"
        problems.append(Problem(message, f"{path}.data_type", hint=hint))
    seen = tensor.dims if tensor.reshape is None else tensor.reshape.shape
    if (tensor.dims or tensor.reshape is not None) and not flat and not _fits(seen, spec.dims):
        message = f"'{tensor.name}' has dims {list(seen)} here and {list(spec.dims)} in the code"
        problems.append(Problem(message, f"{path}.dims", hint=hint))
    return data_type, tensor.dims or spec.dims


def _fits(dims: Sequence[int], expected: Sequence[int]) -> bool:
    return len(dims) == len(expected) and all(there in (-1, here) for here, there in zip(dims, expected, strict=True))


def _unknown(path: str, name: str, what: str, known: Sequence[str], signature: Signature) -> Problem:
    message = f"'{signature.function}' has no {what} '{name}'"
    return Problem(message, f"{path}.name", hint=f"it has {', '.join(known)}")


def _enum(spec: ArraySpec) -> DataType:
    return TENSOR_TYPES[spec.datatype].config
