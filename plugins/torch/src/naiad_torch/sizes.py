"""Sizes that follow from others, as `2*s0+1`: sums, differences and products of numbers and of names of sizes. Pure."""

import ast
import functools
import operator
from collections.abc import Callable, Mapping

_OPERATORS: Mapping[type[ast.operator], Callable[[int, int], int]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
}


def is_expression(text: str) -> bool:
    """Whether the text is such an expression; a number and a name are, too."""
    try:
        _value(_parsed(text), dict.fromkeys(_names(text), 1))
    except (SyntaxError, ValueError):
        return False
    return True


def follows(expression: str, size: int, bound: dict[str, int]) -> bool:
    """Whether the expression can have that value, given the values of names in `bound`.

    The value of a single name that is not there yet is put there. Of an expression with several such names only the
    whole is known: it has one value wherever it stands.
    """
    unknown = [name for name in _names(expression) if name not in bound]
    node = _parsed(expression)
    if not unknown:
        return _value(node, bound) == size
    first, second, third = (_value(node, {**bound, **dict.fromkeys(unknown, value)}) for value in (0, 1, 2))
    step = second - first
    if len(unknown) > 1 or step == 0 or third - second != step:
        return bound.setdefault(expression, size) == size
    value, rest = divmod(size - first, step)
    bound[unknown[0]] = value
    return rest == 0 and value >= 0


@functools.cache
def _parsed(text: str) -> ast.expr:
    return ast.parse(text.strip(), mode="eval").body


@functools.cache
def _names(text: str) -> tuple[str, ...]:
    return tuple({node.id: None for node in ast.walk(_parsed(text)) if isinstance(node, ast.Name)})


def _value(node: ast.expr, names: Mapping[str, int]) -> int:
    if isinstance(node, ast.Constant) and isinstance(node.value, int):
        return node.value
    if isinstance(node, ast.Name):
        return names[node.id]
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        return -_value(node.operand, names)
    if isinstance(node, ast.BinOp) and type(node.op) in _OPERATORS:
        return _OPERATORS[type(node.op)](_value(node.left, names), _value(node.right, names))
    raise ValueError(f"{ast.unparse(node)} is not a sum, difference or product")
