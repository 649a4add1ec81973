"""Arithmetic, comparison, logic and choice between tensors, element by element."""

from naiad_caffe2.translation.operator import MANY, Operator, operator

_PAIRS = {
    "Add": "Add",
    "And": "And",
    "BitwiseAnd": "BitwiseAnd",
    "BitwiseOr": "BitwiseOr",
    "BitwiseXor": "BitwiseXor",
    "Div": "Div",
    "EQ": "Equal",
    "GE": "GreaterOrEqual",
    "GT": "Greater",
    "LE": "LessOrEqual",
    "LT": "Less",
    "Mul": "Mul",
    "Or": "Or",
    "Sub": "Sub",
    "Xor": "Xor",
}


@operator(*_PAIRS, inputs=2)
def _pair(op: Operator) -> str:
    return op.emit(_PAIRS[op.type], op.inputs[0], _broadcast(op))


@operator("NE", inputs=2)
def _unequal(op: Operator) -> str:
    return op.emit("Not", op.emit("Equal", op.inputs[0], _broadcast(op)))


@operator("Pow", inputs=(1, 2))
def _power(op: Operator) -> str:
    if len(op.inputs) == 2:
        return op.emit("Pow", op.inputs[0], _broadcast(op))
    _broadcasting(op)
    return op.emit("Pow", op.inputs[0], op.scalar_like(op.arguments.number("exponent", 0.0), op.inputs[0]))


@operator("Sum", inputs=(1, MANY))
def _total(op: Operator) -> str:
    value = op.inputs[0] if len(op.inputs) > 1 else op.emit("Identity", op.inputs[0])
    for other in op.inputs[1:]:
        value = op.emit("Add", value, other)
    return value


@operator("Max", "Min", "Mean", inputs=(1, MANY))
def _extreme(op: Operator) -> str:
    return op.emit(op.type, *op.inputs)


@operator("WeightedSum", inputs=(2, MANY))
def _weighted_sum(op: Operator) -> str:
    """Inputs go in pairs of a tensor and its weight, of one element."""
    if len(op.inputs) % 2:
        raise op.error("needs a weight behind every input")
    parts = [
        op.emit("Mul", value, op.emit("Reshape", weight, op.integers()))
        for value, weight in zip(op.inputs[::2], op.inputs[1::2], strict=True)
    ]
    value = parts[0]
    for other in parts[1:]:
        value = op.emit("Add", value, other)
    return value


@operator("Where", inputs=3)
def _where(op: Operator) -> str:
    rows = op.arguments.flag("enable_broadcast")
    chosen, *sides = op.inputs
    return op.emit("Where", _for_rows(op, chosen, sides[0]) if rows else chosen, *sides)


@operator("Conditional", inputs=3)
def _conditional(op: Operator) -> str:
    """Whole rows of one side or of the other."""
    chosen, *sides = op.inputs
    return op.emit("Where", _for_rows(op, chosen, sides[0]), *sides)


def _for_rows(op: Operator, chosen: str, side: str) -> str:
    missing = op.rank(side) - op.rank(chosen)
    axes = range(op.rank(chosen), op.rank(chosen) + missing)
    return op.emit("Unsqueeze", chosen, op.integers(*axes)) if missing > 0 else chosen


def _broadcasting(op: Operator) -> tuple[bool, int | None]:
    """Whether the second input is laid over the first by the old rules, and from which axis on."""
    old, axis = op.arguments.flag("broadcast"), op.arguments.integer("axis", -1)
    letter = op.arguments.text("axis_str")
    if letter:
        axis = op.order().find(letter.upper())
        if axis < 0:
            raise op.error(f"has axis_str '{letter}', which is not a letter of {op.order()}")
    return old, None if axis == -1 else axis


def _broadcast(op: Operator) -> str:
    """The second input, with dims behind its own where the old rules put its first dim at an axis of the first input.

    Without `broadcast` the rules are those of numpy, which are ONNX's as well.
    """
    first, second = op.inputs
    old, axis = _broadcasting(op)
    if not old:
        return second
    shape = op.shape(second)
    if shape and all(size == 1 for size in shape):
        return op.emit("Reshape", second, op.integers())
    if axis is None:
        return second
    behind = op.rank(first) - op.axis(first, axis) - len(shape)
    if behind < 0:
        raise op.error(f"lays an input of {len(shape)} dims over one of {op.rank(first)} from axis {axis} on")
    if not behind:
        return second
    return op.emit("Unsqueeze", second, op.integers(*range(len(shape), len(shape) + behind)))
