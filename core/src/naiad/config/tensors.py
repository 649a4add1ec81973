"""Inputs, outputs and batch tensors of a model configuration.

Field names, numbers and types are those of `model_config.proto` of the Open Inference Protocol's Triton extensions.
"""

from enum import IntEnum
from typing import Annotated

from naiad.config.fields import Wire, message


class DataType(IntEnum):
    """`DataType`."""

    TYPE_INVALID = 0
    TYPE_BOOL = 1
    TYPE_UINT8 = 2
    TYPE_UINT16 = 3
    TYPE_UINT32 = 4
    TYPE_UINT64 = 5
    TYPE_INT8 = 6
    TYPE_INT16 = 7
    TYPE_INT32 = 8
    TYPE_INT64 = 9
    TYPE_FP16 = 10
    TYPE_FP32 = 11
    TYPE_FP64 = 12
    TYPE_STRING = 13
    TYPE_BF16 = 14


class InputFormat(IntEnum):
    """`ModelInput.Format`."""

    FORMAT_NONE = 0
    FORMAT_NHWC = 1
    FORMAT_NCHW = 2


class BatchInputKind(IntEnum):
    """`BatchInput.Kind`."""

    BATCH_ELEMENT_COUNT = 0
    BATCH_ACCUMULATED_ELEMENT_COUNT = 1
    BATCH_ACCUMULATED_ELEMENT_COUNT_WITH_ZERO = 2
    BATCH_MAX_ELEMENT_COUNT_AS_SHAPE = 3
    BATCH_ITEM_SHAPE = 4
    BATCH_ITEM_SHAPE_FLATTEN = 5


class BatchOutputKind(IntEnum):
    """`BatchOutput.Kind`."""

    BATCH_SCATTER_WITH_INPUT_SHAPE = 0


@message
class ModelTensorReshape:
    """`ModelTensorReshape`."""

    shape: Annotated[tuple[int, ...], Wire(1, "int64")] = ()


@message
class ModelInput:
    """`ModelInput`."""

    name: Annotated[str, Wire(1)] = ""
    data_type: Annotated[DataType, Wire(2)] = DataType.TYPE_INVALID
    format: Annotated[InputFormat, Wire(3)] = InputFormat.FORMAT_NONE
    dims: Annotated[tuple[int, ...], Wire(4, "int64")] = ()
    reshape: Annotated[ModelTensorReshape | None, Wire(5)] = None
    is_shape_tensor: Annotated[bool, Wire(6)] = False
    allow_ragged_batch: Annotated[bool, Wire(7)] = False
    optional: Annotated[bool, Wire(8)] = False
    is_non_linear_format_io: Annotated[bool, Wire(9)] = False


@message
class ModelOutput:
    """`ModelOutput`."""

    name: Annotated[str, Wire(1)] = ""
    data_type: Annotated[DataType, Wire(2)] = DataType.TYPE_INVALID
    dims: Annotated[tuple[int, ...], Wire(3, "int64")] = ()
    reshape: Annotated[ModelTensorReshape | None, Wire(5)] = None
    label_filename: Annotated[str, Wire(4)] = ""
    is_shape_tensor: Annotated[bool, Wire(6)] = False
    is_non_linear_format_io: Annotated[bool, Wire(7)] = False


@message
class BatchInput:
    """`BatchInput`."""

    kind: Annotated[BatchInputKind, Wire(1)] = BatchInputKind.BATCH_ELEMENT_COUNT
    target_name: Annotated[tuple[str, ...], Wire(2)] = ()
    data_type: Annotated[DataType, Wire(3)] = DataType.TYPE_INVALID
    source_input: Annotated[tuple[str, ...], Wire(4)] = ()


@message
class BatchOutput:
    """`BatchOutput`."""

    target_name: Annotated[tuple[str, ...], Wire(1)] = ()
    kind: Annotated[BatchOutputKind, Wire(2)] = BatchOutputKind.BATCH_SCATTER_WITH_INPUT_SHAPE
    source_input: Annotated[tuple[str, ...], Wire(3)] = ()
