"""Convolutions, and the arguments that describe a sliding window: kernel, stride, padding, dilation."""

from dataclasses import dataclass
from typing import Any

from naiad_caffe2.translation.operator import Operator, operator

NOT_SET, VALID, SAME, CAFFE = range(4)
"""Values of `legacy_pad`."""

_SIDES = ("pad_t", "pad_l", "pad_b", "pad_r")


@dataclass(frozen=True, slots=True)
class Window:
    """Sizes for every axis of the picture; `pads` are all those in front, then all those behind."""

    kernel: tuple[int, ...]
    strides: tuple[int, ...]
    dilations: tuple[int, ...]
    pads: tuple[int, ...]
    legacy: int


def window_of(op: Operator, axes: int) -> Window:
    """The window of an operator over that many axes. Raises TranslationError for arguments of other lengths."""
    legacy = op.arguments.integer("legacy_pad", NOT_SET)
    if legacy not in (NOT_SET, VALID, SAME, CAFFE):
        raise op.error(f"has legacy_pad {legacy}; there are 0 to 3")
    pads = _pads(op, axes)
    if legacy in (VALID, SAME) and any(pads):
        raise op.error("has both legacy_pad and pads")
    return Window(
        _sizes(op, "kernel", axes, 0),
        _sizes(op, "stride", axes, 1),
        _sizes(op, "dilation", axes, 1),
        pads,
        legacy,
    )


def settled_pads(op: Operator, window: Window, picture: tuple[int | str | None, ...]) -> dict[str, object]:
    """The pads as ONNX takes them.

    The old rules of Caffe round sizes up where Caffe2 rounds them down: they pad behind as much as the last window
    needs, except for one that would begin in the padding. That takes a picture of known size.
    """
    if window.legacy == SAME:
        if any(kernel < stride - 1 for kernel, stride in zip(window.kernel, window.strides, strict=True)):
            raise op.error("has strides that leap over parts of the picture, which SAME padding cannot have")
        return {"auto_pad": "SAME_UPPER"}
    if window.legacy != CAFFE:
        return {"pads": list(window.pads)}
    heads = window.pads[: len(window.kernel)]
    tails = []
    for size, kernel, stride, head in zip(picture, window.kernel, window.strides, heads, strict=True):
        if not isinstance(size, int):
            raise op.error("has legacy_pad 3, which needs the size of the picture: write it in the dims of the input")
        tail = _tail(size, kernel, stride, head)
        if tail >= kernel:
            raise op.error("has legacy_pad 3, and a last window that would lie outside of the picture")
        tails.append(tail)
    return {"pads": [*heads, *tails]}


def _tail(size: int, kernel: int, stride: int, head: int) -> int:
    count = -(-(size + 2 * head - kernel) // stride) + 1
    if head > 0 and (count - 1) * stride >= size + head:
        count -= 1
    return max(0, (count - 1) * stride + kernel - size - head)


def _sizes(op: Operator, name: str, axes: int, default: int) -> tuple[int, ...]:
    """`kernels`, `kernel`, or `kernel_h` and `kernel_w`."""
    many = op.arguments.integers(f"{name}s")
    one = op.arguments.integer(name)
    sides = [op.arguments.integer(f"{name}_{side}") for side in "hw" if f"{name}_{side}" in op.arguments]
    if one:
        return (one,) * axes
    values = many or tuple(sides) or (default,) * axes
    if len(values) != axes:
        raise op.error(f"has {len(values)} sizes of its {name} for {axes} axes")
    return values


def _pads(op: Operator, axes: int) -> tuple[int, ...]:
    many = op.arguments.integers("pads")
    one = op.arguments.integer("pad")
    sides = [op.arguments.integer(side) for side in _SIDES if side in op.arguments]
    if sides and len(sides) != len(_SIDES):
        raise op.error("has pads for some sides only; write pad_t, pad_l, pad_b and pad_r")
    if one:
        return (one,) * (2 * axes)
    values = many or tuple(sides) or (0,) * (2 * axes)
    if len(values) != 2 * axes:
        raise op.error(f"has {len(values)} pads for {axes} axes; it takes {2 * axes}")
    return values


@operator("Conv", "Conv1D", "Conv2D", "Conv3D", inputs=(2, 3))
def _convolution(op: Operator) -> str:
    """Kernels are [out, in / group, …], or [out, …, in / group] in NHWC."""
    last = op.order() == "NHWC"
    picture, kernels = (op.channels_first(name) if last else name for name in op.inputs[:2])
    shape = op.shape(picture)
    window = window_of(op, len(shape) - 2)
    _check_kernel(op, window, kernels)
    _check_channels(op, shape[1], op.shape(kernels)[1])
    result = _emitted(op, "Conv", (picture, kernels), window, **settled_pads(op, window, shape[2:]))
    return op.channels_last(result) if last else result


@operator("ConvTranspose", inputs=(2, 3))
def _transposed_convolution(op: Operator) -> str:
    """Kernels are [in, out / group, …], or [in, …, out / group] in NHWC."""
    last = op.order() == "NHWC"
    picture, kernels = (op.channels_first(name) if last else name for name in op.inputs[:2])
    axes = op.rank(picture) - 2
    window = window_of(op, axes)
    if window.legacy != NOT_SET:
        raise op.error("has a legacy_pad, which transposed convolutions do not")
    _check_kernel(op, window, kernels)
    padding = list(_sizes(op, "adj", axes, 0))
    result = _emitted(op, "ConvTranspose", (picture, kernels), window, pads=list(window.pads), output_padding=padding)
    return op.channels_last(result) if last else result


def _emitted(op: Operator, kind: str, inputs: tuple[str, str], window: Window, **pads: Any) -> str:
    """The node over a picture and kernels in the order of NCHW, and the bias where there is one."""
    return op.emit(
        kind,
        *inputs,
        *op.inputs[2:],
        kernel_shape=list(window.kernel),
        strides=list(window.strides),
        dilations=list(window.dilations),
        group=op.arguments.integer("group", 1),
        **pads,
    )


def _check_kernel(op: Operator, window: Window, kernels: str) -> None:
    written = op.shape(kernels)[2:]
    if any(isinstance(size, int) and size != message for size, message in zip(written, window.kernel, strict=False)):
        raise op.error(f"has the kernel {list(window.kernel)} and weights for {list(written)}")


def _check_channels(op: Operator, channels: int | str | None, each: int | str | None) -> None:
    """ONNX Runtime would find out with the first request only."""
    groups = op.arguments.integer("group", 1)
    if isinstance(channels, int) and isinstance(each, int) and channels != each * groups:
        raise op.error(
            f"has pictures of {channels} channels, and weights for {each * groups} ({each} in each of {groups} groups)"
        )
