"""Segment reductions: sums, means and maxima over the rows of each segment; a tensor holds the segment lengths.

Each row of the data goes to its segment by an addition of scattered rows. Lengths that do not sum to the number of rows
scatter out of bounds, which ONNX Runtime refuses on the CPU: the request fails, as it did with Caffe2.
"""

from onnx import TensorProto, helper

from naiad_caffe2.translation.operator import Operator, operator

_REDUCTIONS = {"Sum": "add", "Mean": "add", "WeightedSum": "add", "Max": "max"}


@operator("LengthsSum", "LengthsMean", "LengthsMax", inputs=2)
def _reduced(op: Operator) -> str:
    return _by_segment(op, op.inputs[0], op.inputs[1], op.type.removeprefix("Lengths"))


@operator("LengthsWeightedSum", inputs=3)
def _weighted(op: Operator) -> str:
    return _by_segment(op, _times(op, op.inputs[0], op.inputs[1]), op.inputs[2], "Sum")


@operator("SparseLengthsSum", "SparseLengthsMean", inputs=3)
def _gathered(op: Operator) -> str:
    table, indices, lengths = op.inputs
    return _by_segment(op, op.emit("Gather", table, indices, axis=0), lengths, op.type.removeprefix("SparseLengths"))


@operator("SparseLengthsWeightedSum", inputs=4)
def _gathered_times(op: Operator) -> str:
    table, weights, indices, lengths = op.inputs
    rows = _times(op, op.emit("Gather", table, indices, axis=0), weights)
    return _by_segment(op, rows, lengths, "Sum")


@operator("LengthsToSegmentIds")
def _segment_ids(op: Operator) -> str:
    lengths = op.emit("Cast", op.inputs[0], to=TensorProto.INT64)
    total = op.emit("ReduceSum", lengths, keepdims=1)
    return op.emit("Cast", _segments(op, lengths, total), to=TensorProto.INT32)


def _times(op: Operator, rows: str, weights: str) -> str:
    behind = op.rank(rows) - 1
    return op.emit(
        "Mul", rows, op.emit("Unsqueeze", weights, op.integers(*range(1, 1 + behind))) if behind else weights
    )


def _by_segment(op: Operator, rows: str, lengths: str, kind: str) -> str:
    lengths = op.emit("Cast", lengths, to=TensorProto.INT64)
    segments = _segments(op, lengths, op.emit("Shape", rows, start=0, end=1))
    row = op.emit("Shape", rows, start=1)
    shape = op.emit("Concat", op.emit("Shape", lengths), row, axis=0)
    start = float("-inf") if kind == "Max" else 0.0
    empty = op.emit("ConstantOfShape", shape, value=helper.make_tensor("", TensorProto.FLOAT, [1], [start]))
    if op.graph.element_type(rows) != TensorProto.FLOAT:
        empty = op.emit("Cast", empty, to=op.graph.element_type(rows))
    op.graph.set_shape(empty, (op.shape(lengths)[0], *op.shape(rows)[1:]))
    indices = op.emit("Unsqueeze", segments, op.integers(1))
    result = op.emit("ScatterND", empty, indices, rows, reduction=_REDUCTIONS[kind])
    if kind == "Sum":
        return result
    behind = range(1, op.rank(rows))
    counts = op.emit("Unsqueeze", lengths, op.integers(*behind)) if behind else lengths
    if kind == "Max":
        filled = op.emit("Greater", counts, op.integers(0))
        return op.emit("Where", filled, result, op.scalar_like(0, rows))
    least = op.emit("Max", counts, op.integers(1))
    return op.emit("Div", result, op.emit("Cast", least, to=op.graph.element_type(rows)))


def _segments(op: Operator, lengths: str, total: str) -> str:
    """The segment of each row, INT64[rows]: how many segments begin before it or with it, less one."""
    first = op.integers(0)
    starts = op.emit("Concat", first, op.emit("CumSum", lengths, op.integers(0)), axis=0)
    marks = op.emit(
        "ConstantOfShape",
        op.emit("Add", total, op.integers(1)),
        value=helper.make_tensor("", TensorProto.INT64, [1], [0]),
    )
    ones = op.emit(
        "ConstantOfShape", op.emit("Shape", starts), value=helper.make_tensor("", TensorProto.INT64, [1], [1])
    )
    begun = op.emit("ScatterND", marks, op.emit("Unsqueeze", starts, op.integers(1)), ones, reduction="add")
    counted = op.emit("Sub", op.emit("CumSum", begun, op.integers(0)), op.integers(1))
    return op.emit("Slice", counted, op.integers(0), total, op.integers(0))
