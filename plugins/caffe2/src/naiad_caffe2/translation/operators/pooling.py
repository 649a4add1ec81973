"""Pooling over windows, and over whole images."""

from naiad_caffe2.translation.operator import Operator, operator
from naiad_caffe2.translation.operators.convolution import settled_pads, window_of

_POOLS = {f"{kind}{axes}": kind for kind in ("MaxPool", "AveragePool") for axes in ("", "1D", "2D", "3D")}


@operator(*_POOLS, "LpPool")
def _pool(op: Operator) -> str:
    kind = _POOLS.get(op.type, "LpPool")
    last = op.order() == "NHWC"
    picture = op.channels_first(op.inputs[0]) if last else op.inputs[0]
    whole = op.arguments.flag("global_pooling")
    result = _whole(op, kind, picture) if whole else _windowed(op, kind, picture)
    return op.channels_last(result) if last else result


def _whole(op: Operator, kind: str, picture: str) -> str:
    window = window_of(op, op.rank(picture) - 2)
    if any(window.pads) or any(size != 1 for size in (*window.strides, *window.dilations)):
        raise op.error("pools whole pictures (global_pooling), so it can have neither pads nor strides nor dilations")
    op.arguments.flag("count_include_pad")
    return op.emit(f"Global{kind}", picture, **({"p": op.arguments.integer("p", 2)} if kind == "LpPool" else {}))


def _windowed(op: Operator, kind: str, picture: str) -> str:
    shape = op.shape(picture)
    window = window_of(op, len(shape) - 2)
    if not all(window.kernel):
        raise op.error("has neither a kernel nor global_pooling")
    attributes: dict[str, object] = {"kernel_shape": list(window.kernel), "strides": list(window.strides)}
    if kind == "MaxPool" and any(size != 1 for size in window.dilations):
        attributes["dilations"] = list(window.dilations)
    elif any(size != 1 for size in window.dilations):
        raise op.error("has dilations, which only MaxPool and convolutions have")
    return op.emit(kind, picture, **attributes, **settled_pads(op, window, shape[2:]), **_extras(op, kind))


def _extras(op: Operator, kind: str) -> dict[str, object]:
    if kind == "LpPool":
        return {"p": op.arguments.integer("p", 2)}
    if kind == "AveragePool" and op.arguments.flag("count_include_pad"):
        return {"count_include_pad": 1}
    return {}
