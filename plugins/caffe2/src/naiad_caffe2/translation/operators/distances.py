"""Distances and similarities between the rows of two tensors, and factors per row."""

from naiad_caffe2.translation.operator import Operator, operator


@operator("DotProduct", inputs=2)
def _dot_product(op: Operator) -> str:
    return _row_sums(op, op.emit("Mul", *op.inputs))


@operator("SquaredL2Distance", inputs=2)
def _squared_distance(op: Operator) -> str:
    """Half the sum of the squares."""
    difference = op.emit("Sub", *op.inputs)
    return op.emit("Mul", _row_sums(op, op.emit("Mul", difference, difference)), op.scalar_like(0.5, op.inputs[0]))


@operator("L1Distance", inputs=2)
def _absolute_distance(op: Operator) -> str:
    return _row_sums(op, op.emit("Abs", op.emit("Sub", *op.inputs)))


@operator("CosineSimilarity", inputs=2)
def _cosine(op: Operator) -> str:
    least = op.scalar_like(1e-12, op.inputs[0])
    squares = [op.emit("Max", _row_sums(op, op.emit("Mul", side, side)), least) for side in op.inputs]
    return op.emit("Div", _row_sums(op, op.emit("Mul", *op.inputs)), op.emit("Sqrt", op.emit("Mul", *squares)))


@operator("RowMul", inputs=2)
def _row_factors(op: Operator) -> str:
    rows, factors = op.inputs
    return op.emit("Mul", rows, _behind(op, factors, op.rank(rows) - 1))


@operator("ElementwiseLinear", inputs=3)
def _linear(op: Operator) -> str:
    """Every element from `axis` on has a factor and a summand."""
    operand, factors, summands = op.inputs
    axis = op.axis(operand, op.arguments.integer("axis", 1))
    shape = op.emit("Shape", operand, start=axis)
    sides = [op.emit("Reshape", side, shape) for side in (factors, summands)]
    return op.emit("Add", op.emit("Mul", operand, sides[0]), sides[1])


def _row_sums(op: Operator, value: str) -> str:
    """One sum for each row; elements that stand alone are rows."""
    rank = op.rank(value)
    return value if rank < 2 else op.emit("ReduceSum", value, op.integers(*range(1, rank)), keepdims=0)


def _behind(op: Operator, value: str, dims: int) -> str:
    return op.emit("Unsqueeze", value, op.integers(*range(1, 1 + dims))) if dims > 0 else value
