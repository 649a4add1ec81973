"""Reader of engines: describes a TensorRT engine as plain data."""

from collections.abc import Mapping
from types import MappingProxyType, ModuleType
from typing import Any

from naiad_config import DataType
from naiad_tensorrt.description import LINEAR, EngineDescription, EngineTensor, Profile, Range, Shape

DATA_TYPES: Mapping[str, DataType] = MappingProxyType(
    {
        "BOOL": DataType.TYPE_BOOL,
        "UINT8": DataType.TYPE_UINT8,
        "INT8": DataType.TYPE_INT8,
        "INT32": DataType.TYPE_INT32,
        "INT64": DataType.TYPE_INT64,
        "HALF": DataType.TYPE_FP16,
        "BF16": DataType.TYPE_BF16,
        "FLOAT": DataType.TYPE_FP32,
    }
)
"""The datatype of a configuration for each of TensorRT's that has one; FP8, FP4, INT4 and E8M0 have none."""


def description_of(trt: ModuleType, engine: Any) -> EngineDescription:
    """What an `ICudaEngine` takes and gives, and its optimisation profiles."""
    names = [engine.get_tensor_name(index) for index in range(engine.num_io_tensors)]
    tensors = tuple(_tensor(trt, engine, name) for name in names)
    inputs = [tensor for tensor in tensors if tensor.is_input]
    return EngineDescription(
        tensors, tuple(_profile(engine, inputs, index) for index in range(max(engine.num_optimization_profiles, 1)))
    )


def _tensor(trt: ModuleType, engine: Any, name: str) -> EngineTensor:
    kind = engine.get_tensor_dtype(name).name
    return EngineTensor(
        name=name,
        is_input=engine.get_tensor_mode(name) == trt.TensorIOMode.INPUT,
        type=kind,
        datatype=DATA_TYPES.get(kind),
        dims=tuple(engine.get_tensor_shape(name)),
        is_shape_tensor=engine.is_shape_inference_io(name),
        on_host=engine.get_tensor_location(name) == trt.TensorLocation.HOST,
        format=_format(trt, engine, name),
        vectorized_dim=engine.get_tensor_vectorized_dim(name),
        components=max(engine.get_tensor_components_per_element(name), 1),
    )


def _format(trt: ModuleType, engine: Any, name: str) -> str:
    """The name of the tensor's format; the lean runtime has no type for formats, and describes them alone."""
    if hasattr(trt, "TensorFormat"):
        return str(engine.get_tensor_format(name).name)
    described = str(engine.get_tensor_format_desc(name))
    return LINEAR if described.lower().startswith("row major linear") else described


def _profile(engine: Any, inputs: list[EngineTensor], index: int) -> Profile:
    shapes = {tensor.name: _shapes(engine, tensor, index) for tensor in inputs}
    values = {tensor.name: _values(engine, tensor.name, index) for tensor in inputs if tensor.is_shape_tensor}
    return Profile(index, shapes, {name: bounds for name, bounds in values.items() if bounds is not None})


def _shapes(engine: Any, tensor: EngineTensor, index: int) -> Range:
    if -1 not in tensor.dims:
        return tensor.dims, tensor.dims, tensor.dims
    return _range([tuple(shape) for shape in engine.get_tensor_profile_shape(tensor.name, index)])


def _values(engine: Any, name: str, index: int) -> Range | None:
    # the bindings call the first argument `name` and the second `profile_index`, and take them the other way round
    bounds = engine.get_tensor_profile_values(index, name)
    return _range([tuple(values) for values in bounds]) if bounds else None


def _range(shapes: list[Shape]) -> Range:
    least, best, most = shapes
    return least, best, most
