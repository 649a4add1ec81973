"""Rules for the inputs and outputs of a model: names, types, dimensions, reshape and formats."""

import math
from collections.abc import Iterator, Sequence

from naiad_config.errors import Problem
from naiad_config.model import ModelConfig
from naiad_config.paths import element
from naiad_config.tensors import DataType, InputFormat, ModelInput, ModelOutput

_DIMENSION = "dimension must be integer >= 1, or -1 to indicate a variable-size dimension"
_RESHAPED = "reshape dimensions must be integer >= 1, or -1 to indicate a variable-size dimension"


def problems(config: ModelConfig) -> Iterator[Problem]:
    """What is wrong in the inputs and outputs that are given."""
    for kind, tensors in _tensors(config):
        seen: set[str] = set()
        for index, tensor in enumerate(tensors):
            path = element(kind, index)
            what = f"model {kind} '{tensor.name}'"
            yield from _dims(config, tensor, what, path)
            yield from _reshape(config, tensor, what, path)
            yield from _shape_tensor(config, tensor, what, path)
            if tensor.name and tensor.name in seen:
                yield Problem(f"{what} is given more than once", f"{path}.name", hint="rename or remove one of them")
            seen.add(tensor.name)
    for index, tensor in enumerate(config.input):
        if tensor.format != InputFormat.FORMAT_NONE and tensor.dims and len(tensor.dims) != 3:
            message = (
                f"model input NHWC/NCHW require 3 dims for {config.name}, but '{tensor.name}' has {len(tensor.dims)}"
            )
            yield Problem(message, f"input[{index}].format", hint="leave the batch dimension out of 'dims'")


def missing(config: ModelConfig) -> Iterator[Problem]:
    """What a complete configuration must say of each input and output."""
    for kind, tensors in _tensors(config):
        for index, tensor in enumerate(tensors):
            path = element(kind, index)
            if not tensor.name:
                yield Problem(f"model {kind} must specify 'name' for {config.name}", path)
            if tensor.data_type == DataType.TYPE_INVALID:
                message = f"model {kind} '{tensor.name}' must specify 'data_type' for {config.name}"
                yield Problem(message, f"{path}.data_type", hint="as data_type: TYPE_FP32")
            if not tensor.dims:
                hint = "as dims: [ 16 ]; a tensor with one value for each item of a batch has dims: [ 1 ]"
                yield Problem(f"model {kind} '{tensor.name}' must specify 'dims' for {config.name}", path, hint=hint)
            yield from _scalar(config, tensor, f"model {kind} '{tensor.name}'", path)


def may_be_tensorrt(config: ModelConfig) -> bool:
    """Whether the model is a TensorRT plan, or nothing says yet what it is."""
    return config.backend == "tensorrt" or config.platform == "tensorrt_plan" or not (config.backend or config.platform)


def _tensors(config: ModelConfig) -> tuple[tuple[str, Sequence[ModelInput | ModelOutput]], ...]:
    return ("input", config.input), ("output", config.output)


def _dims(config: ModelConfig, tensor: ModelInput | ModelOutput, what: str, path: str) -> Iterator[Problem]:
    for index, dim in enumerate(tensor.dims):
        if dim < 1 and dim != -1:
            yield Problem(f"{what} {_DIMENSION} for {config.name}, not {dim}", element(f"{path}.dims", index))


def _reshape(config: ModelConfig, tensor: ModelInput | ModelOutput, what: str, path: str) -> Iterator[Problem]:
    if tensor.reshape is None:
        return
    shape, here = tensor.reshape.shape, f"{path}.reshape"
    wrong = [index for index, dim in enumerate(shape) if dim < 1 and dim != -1]
    for index in wrong:
        message = f"{what} {_RESHAPED} for {config.name}, not {shape[index]}"
        yield Problem(message, element(f"{here}.shape", index))
    if wrong or not tensor.dims:
        return
    reason = f"for {config.name}: {list(tensor.dims)} and {list(shape)}"
    if shape.count(-1) != tensor.dims.count(-1):
        yield Problem(f"{what} has different number of variable-size dimensions for dims and reshape {reason}", here)
    elif _sizes(shape) != _sizes(tensor.dims):
        yield Problem(f"{what} has different size for dims and reshape {reason}", here)


def _scalar(config: ModelConfig, tensor: ModelInput | ModelOutput, what: str, path: str) -> Iterator[Problem]:
    """A reshape to no dimensions is a scalar, and without batching only ONNX graphs have scalars."""
    knows_scalars = config.backend == "onnxruntime" or config.platform == "onnxruntime_onnx"
    if tensor.reshape is None or tensor.reshape.shape or config.max_batch_size > 0 or knows_scalars:
        return
    message = "cannot have empty reshape for non-batching model as scalar tensors are not supported"
    hint = "leave the reshape out, or set max_batch_size"
    yield Problem(f"{what} {message} for {config.name}", f"{path}.reshape", hint=hint)


def _sizes(shape: Sequence[int]) -> list[int]:
    """The element counts between the variable dimensions, which a reshape must not change."""
    sizes: list[list[int]] = [[]]
    for dim in shape:
        if dim == -1:
            sizes.append([])
        else:
            sizes[-1].append(dim)
    return [math.prod(part) for part in sizes]


def _shape_tensor(config: ModelConfig, tensor: ModelInput | ModelOutput, what: str, path: str) -> Iterator[Problem]:
    """Triton has them for TensorRT alone; here ONNX and Python models have them, too."""
    if not tensor.is_shape_tensor or may_be_tensorrt(config):
        return
    if config.backend not in ("onnxruntime", "python") and config.platform != "onnxruntime_onnx":
        message = "shape tensors are only supported for TensorRT platform, and for ONNX and Python models"
        hint = "leave 'is_shape_tensor' out"
        yield Problem(f"{message}; {what} of {config.name} is one", f"{path}.is_shape_tensor", hint=hint)
    elif tensor.data_type not in (DataType.TYPE_INVALID, DataType.TYPE_INT32, DataType.TYPE_INT64):
        message = f"{what} of {config.name} is a shape tensor of {tensor.data_type.name}"
        yield Problem(message, f"{path}.data_type", hint="a shape is TYPE_INT32 or TYPE_INT64")
    elif len(tensor.dims) > 1 or tensor.reshape is not None:
        message = f"{what} of {config.name} is a shape tensor, which has one dim"
        yield Problem(message, f"{path}.dims", hint="write how many values there are, without the batch size")
