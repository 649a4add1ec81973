"""Image operators: resizing, padding, and the order of channels."""

import numpy as np

from naiad_caffe2.translation.operator import Operator, operator
from naiad_caffe2.translation.operators.convolution import window_of
from naiad_caffe2.translation.reshaping import like, reshaped

_MODES = {"constant": "constant", "reflect": "reflect", "edge": "edge"}


@operator("ResizeNearest", "UpsampleBilinear", inputs=(1, 2))
def _resize(op: Operator) -> str:
    """By factors that are written or an input that never changes. Bilinear resizing keeps the corners."""
    factors = [op.arguments.number(f"{side}_scale", 1.0) for side in ("height", "width")]
    if len(op.inputs) == 2:
        value = op.graph.value(op.inputs[1])
        if value is None:
            raise op.error("takes its factors from values that are computed")
        factors = [float(factor) for factor in value.ravel()]
    return _resized(op, factors, op.type == "ResizeNearest")


@operator("UpsampleNearest")
def _upsample(op: Operator) -> str:
    return _resized(op, [float(op.arguments.integer("scale", 2))] * 2, True)


def _resized(op: Operator, factors: list[float], nearest: bool) -> str:
    last = op.order() == "NHWC"
    operand = op.channels_first(op.inputs[0]) if last else op.inputs[0]
    scales = op.graph.constant(np.array([1, 1, *factors], np.float32))
    how = (
        {"mode": "nearest", "coordinate_transformation_mode": "asymmetric", "nearest_mode": "floor"}
        if nearest
        else {"mode": "linear", "coordinate_transformation_mode": "align_corners"}
    )
    result = op.emit("Resize", operand, "", scales, **how)
    return op.channels_last(result) if last else result


@operator("PadImage")
def _pad(op: Operator) -> str:
    operand, last = op.inputs[0], op.order() == "NHWC"
    mode = op.arguments.text("mode", "constant")
    if mode not in _MODES:
        raise op.error(f"has the mode '{mode}'; there are {', '.join(_MODES)}")
    axes = op.rank(operand) - 2
    pads = window_of(op, axes).pads
    front, back = pads[:axes], pads[axes:]
    around = (0, *front, 0, 0, *back, 0) if last else (0, 0, *front, 0, 0, *back)
    value = op.scalar_like(op.arguments.number("value", 0.0), operand)
    return op.emit("Pad", operand, op.integers(*around), value, mode=_MODES[mode])


@operator("ChannelShuffle")
def _shuffle(op: Operator) -> str:
    """The channels of all groups in turn."""
    last = op.order() == "NHWC"
    op.arguments.integers("kernels"), op.arguments.integer("kernel")
    operand = op.channels_first(op.inputs[0]) if last else op.inputs[0]
    groups, channels = op.arguments.integer("group", 1), op.shape(operand)[1]
    if not isinstance(channels, int) or channels % groups:
        raise op.error(f"cannot put {channels} channels into {groups} groups")
    split = op.emit("Reshape", operand, op.integers(0, groups, channels // groups, -1))
    turned = op.emit("Transpose", split, perm=[0, 2, 1, 3])
    result = reshaped(op, turned, [(operand, 0), channels, *like(op, operand)[2:]])
    return op.channels_last(result) if last else result
