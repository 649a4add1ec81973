"""Checks of batch inputs, batch outputs, ragged inputs and shape tensors against a signature."""

from collections.abc import Sequence

from naiad.errors import Problem
from naiad_config import DataType, ModelConfig, ModelInput, ModelOutput
from naiad_custom.declaration import ArraySpec
from naiad_custom.signature import Argument, Signature
from naiad_tensors.datatypes import TENSOR_TYPES
from naiad_tensors.ragged import batch_input_shape


def batch_inputs(config: ModelConfig) -> frozenset[str]:
    """The parameters that the server makes from the other inputs of a batch."""
    return frozenset(name for generated in config.batch_input for name in generated.target_name)


def scattered_outputs(config: ModelConfig) -> frozenset[str]:
    """The outputs that a function gives in one piece for the whole batch."""
    return frozenset(name for generated in config.batch_output for name in generated.target_name)


def check_batch_inputs(config: ModelConfig, signature: Signature, problems: list[Problem]) -> None:
    """Hold the batch inputs of a configuration whose inputs are complete against the parameters of their names.

    What it says otherwise than the function goes to `problems`. The annotation of a batch input is its whole shape. A
    function that gets the `Batch` finds them there, and needs no parameter for each.
    """
    arguments = {argument.name: argument for argument in signature.arguments}
    known = {tensor.name for tensor in config.input}
    for index, batch_input in enumerate(config.batch_input):
        if not known.issuperset(batch_input.source_input[:1] or ("",)):
            continue  # the rules of a complete configuration report it
        whole = batch_input_shape(batch_input, config)
        for target, name in enumerate(batch_input.target_name):
            argument, path = arguments.get(name), f"batch_input[{index}].target_name[{target}]"
            if argument is not None:
                _compare(argument, batch_input.data_type, whole, f"batch_input[{index}]", problems)
            elif not signature.specials:
                message = f"'{signature.function}' has no parameter '{name}'"
                problems.append(Problem(message, path, hint=f"it has {', '.join(arguments)}"))


def check_ragged(argument: Argument, path: str, problems: list[Problem]) -> None:
    """A ragged input holds the elements of all requests, so its array has one variable dim."""
    if argument.spec.dims != (-1,):
        message = f"'{argument.name}' is ragged here, and {argument.spec} in the code"
        hint = f"write {argument.name}: Array[{argument.spec.datatype}, -1], all elements of all requests"
        problems.append(Problem(message, f"{path}.allow_ragged_batch", hint=hint))


def shape_dims(
    tensor: ModelInput | ModelOutput, spec: ArraySpec, path: str, problems: list[Problem]
) -> tuple[int, ...]:
    """The dims of a shape tensor of a function that gets batches: its array begins with the batch size."""
    if len(spec.dims) != 1 or spec.dims[0] == 1 or (tensor.dims and spec.dims[0] not in (-1, tensor.dims[0] + 1)):
        message = f"'{tensor.name}' is a shape tensor here, and {spec} in the code"
        count = tensor.dims[0] + 1 if tensor.dims and tensor.dims[0] > 0 else -1
        hint = f"write {tensor.name}: Array[{spec.datatype}, {count}], the batch size in front of the values"
        problems.append(Problem(message, f"{path}.is_shape_tensor", hint=hint))
        return tuple(tensor.dims)
    return tuple(tensor.dims) or (spec.dims[0] - 1 if spec.dims[0] > 0 else -1,)


def _compare(argument: Argument, data_type: DataType, whole: Sequence[int], path: str, problems: list[Problem]) -> None:
    spec = argument.spec
    expected = TENSOR_TYPES[spec.datatype].config
    if data_type is not expected:
        message = f"'{argument.name}' is {data_type.name} here and {expected.name} in the code"
        problems.append(Problem(message, f"{path}.data_type", hint=f"the annotation is {spec}; change one of the two"))
    fits = len(spec.dims) == len(whole) and all(
        here in (-1, there) for here, there in zip(spec.dims, whole, strict=True)
    )
    if not fits:
        dims = ", ".join(map(str, whole))
        message = f"'{argument.name}' has the shape [{dims}] here and {list(spec.dims)} in the code"
        hint = f"write {argument.name}: Array[{spec.datatype}, {dims}]"
        problems.append(Problem(message, f"{path}.kind", hint=hint))
