"""Messages of inputs, outputs and batch tensors.

Field names, numbers and types are those of `model_config.proto` of the Open Inference Protocol's Triton extensions.
"""

from enum import IntEnum
from typing import Annotated

from naiad_config.fields import Wire, message


class DataType(IntEnum):
    """The element type of a tensor; the wire names are these without `TYPE_`, and BYTES for strings."""

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


_ELEMENT_BYTES = {
    DataType.TYPE_BOOL: 1,
    DataType.TYPE_UINT8: 1,
    DataType.TYPE_UINT16: 2,
    DataType.TYPE_UINT32: 4,
    DataType.TYPE_UINT64: 8,
    DataType.TYPE_INT8: 1,
    DataType.TYPE_INT16: 2,
    DataType.TYPE_INT32: 4,
    DataType.TYPE_INT64: 8,
    DataType.TYPE_FP16: 2,
    DataType.TYPE_FP32: 4,
    DataType.TYPE_FP64: 8,
    DataType.TYPE_BF16: 2,
}


def element_bytes(data_type: DataType) -> int:
    """The bytes of one element of that type; 0 for strings, whose elements have lengths of their own."""
    return _ELEMENT_BYTES.get(data_type, 0)


class InputFormat(IntEnum):
    """How the three dimensions of an image input are laid out; the batch dimension is not counted."""

    FORMAT_NONE = 0
    FORMAT_NHWC = 1
    FORMAT_NCHW = 2


class BatchInputKind(IntEnum):
    """What a batch input tells of a batch: element counts, their running sums, the largest, or its items' shapes."""

    BATCH_ELEMENT_COUNT = 0
    BATCH_ACCUMULATED_ELEMENT_COUNT = 1
    BATCH_ACCUMULATED_ELEMENT_COUNT_WITH_ZERO = 2
    BATCH_MAX_ELEMENT_COUNT_AS_SHAPE = 3
    BATCH_ITEM_SHAPE = 4
    BATCH_ITEM_SHAPE_FLATTEN = 5


class BatchOutputKind(IntEnum):
    """How an output that holds the whole batch in one piece is cut into the answers of its requests."""

    BATCH_SCATTER_WITH_INPUT_SHAPE = 0


@message
class ModelTensorReshape:
    """The shape that the model sees, where it is not the `dims` that clients see; neither counts the batch."""

    shape: Annotated[tuple[int, ...], Wire(1, "int64")] = ()


@message
class ModelInput:
    """A tensor that requests bring. `dims` leave out the batch dimension and are -1 where any size is allowed."""

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
    """A tensor that responses bring; line n of `label_filename`, in the model folder, is the label of index n."""

    name: Annotated[str, Wire(1)] = ""
    data_type: Annotated[DataType, Wire(2)] = DataType.TYPE_INVALID
    dims: Annotated[tuple[int, ...], Wire(3, "int64")] = ()
    reshape: Annotated[ModelTensorReshape | None, Wire(5)] = None
    label_filename: Annotated[str, Wire(4)] = ""
    is_shape_tensor: Annotated[bool, Wire(6)] = False
    is_non_linear_format_io: Annotated[bool, Wire(7)] = False


@message
class BatchInput:
    """A tensor that the server makes for the model from the other inputs of a batch; clients do not send it."""

    kind: Annotated[BatchInputKind, Wire(1)] = BatchInputKind.BATCH_ELEMENT_COUNT
    target_name: Annotated[tuple[str, ...], Wire(2)] = ()
    data_type: Annotated[DataType, Wire(3)] = DataType.TYPE_INVALID
    source_input: Annotated[tuple[str, ...], Wire(4)] = ()


@message
class BatchOutput:
    """Outputs that come for the whole batch in one piece and are cut by the shapes of an input."""

    target_name: Annotated[tuple[str, ...], Wire(1)] = ()
    kind: Annotated[BatchOutputKind, Wire(2)] = BatchOutputKind.BATCH_SCATTER_WITH_INPUT_SHAPE
    source_input: Annotated[tuple[str, ...], Wire(3)] = ()
