"""Matrix products and fully connected layers."""

from naiad_caffe2.translation.operator import Operator, operator
from naiad_caffe2.translation.reshaping import Dim, like, reshaped


@operator("FC", "FCTransposed", inputs=3)
def _fully_connected(op: Operator) -> str:
    """Everything before `axis` are rows, everything from it on is multiplied; weights are [out, in] but in the last."""
    operand, weights, bias = op.inputs
    axis = op.axis(operand, op.arguments.integer("axis", 1))
    rows = _flat(op, operand, axis)
    columns = _flat(op, weights, op.axis(weights, op.arguments.integer("axis_w", 1)))
    if op.rank(bias) > 1:
        bias = op.emit("Reshape", bias, op.integers(-1))
    row_size, sizes_wanted = op.shape(rows)[1], op.shape(columns)[1 if op.type == "FC" else 0]
    if isinstance(row_size, int) and isinstance(sizes_wanted, int) and row_size != sizes_wanted:
        raise op.error(f"has rows of {row_size} numbers, and weights for {sizes_wanted}")
    result = op.emit("Gemm", rows, columns, bias, transB=int(op.type == "FC"))
    if axis == 1:
        return result
    out: list[Dim] = [(result, 1)]
    return reshaped(op, result, [*like(op, operand)[:axis], *out])


@operator("MatMul", inputs=2)
def _product(op: Operator) -> str:
    """The product of two matrices; what has more dims is flattened."""
    sides = []
    for name, letter in zip(op.inputs, "ab", strict=True):
        side = _flat(op, name, op.axis(name, op.arguments.integer(f"axis_{letter}", 1)))
        sides.append(op.emit("Transpose", side, perm=[1, 0]) if op.arguments.flag(f"trans_{letter}") else side)
    return op.emit("MatMul", *sides)


@operator("BatchMatMul", inputs=2)
def _products(op: Operator) -> str:
    """The products of the last two dims."""
    op.arguments.flag("broadcast")
    sides = []
    for name, letter in zip(op.inputs, "ab", strict=True):
        rank = op.rank(name)
        turned = op.arguments.flag(f"trans_{letter}") and rank > 1
        perm = [*range(rank - 2), rank - 1, rank - 2]
        sides.append(op.emit("Transpose", name, perm=perm) if turned else name)
    return op.emit("MatMul", *sides)


def _flat(op: Operator, name: str, axis: int) -> str:
    return name if axis == 1 and op.rank(name) == 2 else op.emit("Flatten", name, axis=axis)
