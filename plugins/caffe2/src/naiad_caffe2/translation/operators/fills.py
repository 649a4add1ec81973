"""Fill operators: constants and the weights of a net, made from the arguments of the operator."""

from typing import Any

import numpy as np
from onnx import helper

from naiad_caffe2.messages import floats_of
from naiad_caffe2.translation.datatypes import NUMPY_TYPES
from naiad_caffe2.translation.operator import MANY, Operator, operator

_GIVEN_TENSOR_FILLS: dict[str, tuple[str, Any]] = {
    "GivenTensorFill": ("floats", np.float32),
    "GivenTensorDoubleFill": ("floats", np.float64),
    "GivenTensorBoolFill": ("ints", np.bool_),
    "GivenTensorInt16Fill": ("ints", np.int16),
    "GivenTensorIntFill": ("ints", np.int32),
    "GivenTensorInt64Fill": ("ints", np.int64),
}
RANDOM = (
    "GaussianFill",
    "MSRAFill",
    "TruncatedGaussianFill",
    "UniformFill",
    "UniformIntFill",
    "UniqueUniformFill",
    "XavierFill",
)


@operator(*_GIVEN_TENSOR_FILLS, inputs=(0, 1))
def _given_tensor(op: Operator) -> str:
    field, dtype = _GIVEN_TENSOR_FILLS[op.type]
    values = op.arguments.raw("values")
    if values is None:
        return _filled(op, np.empty(0, dtype))
    array = floats_of(values) if field == "floats" else np.fromiter(values.ints, np.int64, len(values.ints))
    return _filled(op, array.astype(dtype, copy=False))


@operator("GivenTensorByteStringToUInt8Fill", inputs=(0, 1))
def _given_bytes(op: Operator) -> str:
    values = op.arguments.raw("values")
    content = b"".join(values.strings) if values is not None else b""
    return _filled(op, np.frombuffer(content, np.uint8))


@operator("ConstantFill", inputs=(0, 1))
def _constant_fill(op: Operator) -> str:
    operand = op.arguments.raw("value")
    whole = operand is not None and operand.HasField("i")
    number = op.arguments.integer("dtype", 10 if whole else 1)
    if number not in NUMPY_TYPES:
        raise op.error(f"has the dtype {number}, which is none of {', '.join(map(str, NUMPY_TYPES))}")
    dtype = np.dtype(NUMPY_TYPES[number])
    one = np.array([op.arguments.number("value", 0.0) if dtype.kind == "f" else op.arguments.integer("value")], dtype)
    if not op.inputs:
        return op.graph.constant(np.full(_shape(op, 1), one[0], dtype), op.outputs[0])
    return op.emit("ConstantOfShape", _shape_value(op), value=helper.make_tensor("", _onnx(dtype), [1], one))


@operator("RangeFill")
def _range_fill(op: Operator) -> str:
    shape = _known_shape(op)
    return op.graph.constant(np.arange(int(np.prod(shape)), dtype=np.float32).reshape(shape), op.outputs[0])


@operator("Range", inputs=(1, 3))
def _number_range(op: Operator) -> str:
    like = op.inputs[0]
    bounds = [_scalar(op, name) for name in op.inputs]
    if len(bounds) == 1:
        bounds.insert(0, op.scalar_like(0, like))
    if len(bounds) == 2:
        bounds.append(op.scalar_like(1, like))
    return op.emit("Range", *bounds)


@operator(*RANDOM, inputs=(0, MANY))
def _random_fill(op: Operator) -> str:
    raise op.error(
        "draws random values, so that every load would serve another model; save the trained weights into the init net "
        "(GivenTensorFill)"
    )


def _filled(op: Operator, values: np.ndarray) -> str:
    shape = _shape(op, values.size) if not op.inputs else _known_shape(op)
    if int(np.prod(shape)) != values.size:
        raise op.error(f"has {values.size} values for the shape {list(shape)}")
    return op.graph.constant(values.reshape(shape), op.outputs[0])


def _shape(op: Operator, size: int) -> tuple[int, ...]:
    """The shape that is written; one value without any has no dims."""
    operand = "shape" in op.arguments
    op.arguments.integers("extra_shape")
    op.arguments.flag("input_as_shape")
    shape = op.arguments.integers("shape")
    return shape if operand or size == 1 else (size,)


def _known_shape(op: Operator) -> tuple[int, ...]:
    """The shape that an input gives, where it is known without running the net."""
    extra = op.arguments.integers("extra_shape")
    op.arguments.integers("shape")
    if op.arguments.flag("input_as_shape"):
        value = op.graph.value(op.inputs[0])
        if value is None:
            raise op.error("takes its shape from values that are computed")
        return (*map(int, value.ravel()), *extra)
    shape = op.shape(op.inputs[0])
    sizes = tuple(size for size in shape if isinstance(size, int))
    if len(sizes) != len(shape):
        raise op.error("takes its shape from an input whose sizes vary")
    return (*sizes, *extra)


def _shape_value(op: Operator) -> str:
    """The shape that an input gives, as a value."""
    extra = op.arguments.integers("extra_shape")
    op.arguments.integers("shape")
    as_shape = op.arguments.flag("input_as_shape")
    shape = op.emit("Cast", op.inputs[0], to=_onnx(np.dtype(np.int64))) if as_shape else op.emit("Shape", op.inputs[0])
    return op.emit("Concat", shape, op.integers(*extra), axis=0) if extra else shape


def _scalar(op: Operator, name: str) -> str:
    return op.emit("Reshape", name, op.integers()) if op.shape(name) else name


def _onnx(dtype: np.dtype) -> int:
    return int(helper.np_dtype_to_tensor_dtype(dtype))
