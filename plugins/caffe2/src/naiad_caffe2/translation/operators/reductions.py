"""Reductions along axes: sum, mean, maximum, minimum and norms."""

from naiad_caffe2.translation.operator import Operator, operator

_WRITTEN = {f"Reduce{kind}": f"Reduce{kind}" for kind in ("L1", "L2", "Max", "Mean", "Min", "Sum")}
_SIDES = {f"Reduce{side}{kind}": f"Reduce{kind}" for side in ("Back", "Front") for kind in ("Max", "Mean", "Sum")}


@operator(*_WRITTEN)
def _reduce_axes(op: Operator) -> str:
    """Along the axes that are written, or all."""
    operand = op.inputs[0]
    axes = op.arguments.integers("axes") or range(op.rank(operand))
    return op.emit(op.type, operand, op.integers(*axes), keepdims=int(op.arguments.flag("keepdims", True)))


@operator(*_SIDES)
def _reduce_side(op: Operator) -> str:
    """Along the first or the last axes."""
    rank, count = op.rank(op.inputs[0]), op.arguments.integer("num_reduce_dim", 1)
    if not 0 < count <= rank:
        raise op.error(f"reduces {count} dims of an input with {rank}")
    axes = range(rank - count, rank) if "Back" in op.type else range(count)
    return op.emit(_SIDES[op.type], op.inputs[0], op.integers(*axes), keepdims=0)


@operator("SumElements", "SumSqrElements")
def _sum_of_all(op: Operator) -> str:
    operand = op.inputs[0]
    counted = op.emit("Mul", operand, operand) if op.type == "SumSqrElements" else operand
    return op.emit("ReduceMean" if op.arguments.flag("average") else "ReduceSum", counted, keepdims=0)


@operator("AveragedLoss")
def _mean_of_all(op: Operator) -> str:
    return op.emit("ReduceMean", op.inputs[0], keepdims=0)


@operator("RowwiseMax", "ColwiseMax")
def _matrix_max(op: Operator) -> str:
    """Of matrices behind each other: of each row, or of each column."""
    axis = 2 if op.type == "RowwiseMax" else 1
    return op.emit("ReduceMax", op.inputs[0], op.integers(axis), keepdims=0)
