"""The memory of a graph's weights, computed from the graph alone."""

import math
from typing import Any

from naiad_tensorflow.runtime import runtime

_VARIABLES = frozenset(("VarHandleOp", "VariableV2", "Variable"))


def weight_bytes(graph: Any) -> int:
    """The bytes of the variables and constants of a `GraphDef`, those of its functions included.

    A variable whose shape is not declared counts nothing, and strings count with their characters alone.
    """
    nodes = [*graph.node, *(node for function in graph.library.function for node in function.node_def)]
    variables = (node.attr for node in nodes if node.op in _VARIABLES)
    constants = (node.attr["value"].tensor for node in nodes if node.op == "Const")
    return sum(_bytes(each["dtype"].type, each["shape"].shape) for each in variables) + sum(
        sum(map(len, each.string_val)) or _bytes(each.dtype, each.tensor_shape) for each in constants
    )


def _bytes(number: int, shape: Any) -> int:
    sizes = [dim.size for dim in shape.dim]
    if shape.unknown_rank or min(sizes, default=0) < 0:
        return 0
    dtype = runtime().dtypes.as_dtype(number)
    return math.prod(sizes) * dtype.size if dtype.is_numpy_compatible else 0
