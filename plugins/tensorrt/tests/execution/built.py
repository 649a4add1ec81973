"""Engines for a GPU, built by whichever TensorRT can run them there."""

from collections.abc import Callable
from functools import cache
from importlib import import_module
from typing import Any

import numpy as np

from naiad_tensorrt.runtime import logger_of

_MODULES = ("tensorrt", "tensorrt_bindings", "tensorrt_rtx", "tensorrt_rtx_bindings")


def builder_for(capability: str) -> Any:
    """The installed module that builds engines for a GPU of this compute capability (`9.0`), None when none does.

    TensorRT for RTX leaves out GPUs of data centres from 9.0 on; what it knows is in its `ComputeCapability`.
    """
    for name in _MODULES:
        try:
            trt = import_module(name)
        except ImportError:
            continue
        supported = getattr(trt, "ComputeCapability", None)
        if supported is None or f"SM{capability.replace('.', '')}" in supported.__members__:
            return trt
    return None


class Network:
    """A network on its way to an engine; `profile` takes the least, best and greatest shape of each input."""

    def __init__(self, trt: Any) -> None:
        self.trt = trt
        self._builder = trt.Builder(logger_of(trt))
        flags = getattr(trt.NetworkDefinitionCreationFlag, "STRONGLY_TYPED", None)
        self.definition = self._builder.create_network(0 if flags is None else 1 << int(flags))
        self._config = self._builder.create_builder_config()

    def input(self, name: str, dims: tuple[int, ...], kind: str = "FLOAT") -> Any:
        return self.definition.add_input(name, getattr(self.trt.DataType, kind), dims)

    def join(self, operation: str, one: Any, other: Any) -> Any:
        kind = getattr(self.trt.ElementWiseOperation, operation)
        return self.definition.add_elementwise(one, other, kind).get_output(0)

    def output(self, name: str, tensor: Any) -> None:
        tensor.name = name
        self.definition.mark_output(tensor)

    def profile(self, values: dict[str, Any] | None = None, **shapes: Any) -> None:
        added = self._builder.create_optimization_profile()
        for name, (least, best, most) in shapes.items():
            added.set_shape(name, least, best, most)
        for name, (least, best, most) in (values or {}).items():
            added.set_shape_input(name, least, best, most)
        self._config.add_optimization_profile(added)

    def plan(self) -> bytes:
        plan = self._builder.build_serialized_network(self.definition, self._config)
        assert plan is not None, "TensorRT does not build this network; its log says why"
        return bytes(plan)


def add_sub(trt: Any, kind: str = "FLOAT") -> bytes:
    """SUM = A + B, DIFFERENCE = A - B; rows of 1 to 8 columns, 1 to 8 rows on profile 0 and 9 to 32 on profile 1."""
    return _add_sub(trt, kind)


@cache
def _add_sub(trt: Any, kind: str) -> bytes:
    network = Network(trt)
    a, b = (network.input(name, (-1, -1), kind) for name in ("A", "B"))
    network.output("SUM", network.join("SUM", a, b))
    network.output("DIFFERENCE", network.join("SUB", a, b))
    for least, most in ((1, 8), (9, 32)):
        bounds = ((least, 1), (most, 4), (most, 8))
        network.profile(A=bounds, B=bounds)
    return network.plan()


@cache
def copier(trt: Any, kind: str) -> bytes:
    """OUT = IN, 1 to 4 rows of 3."""
    network = Network(trt)
    sent = network.input("IN", (-1, 3), kind)
    network.output("OUT", network.definition.add_identity(sent).get_output(0))
    network.profile(IN=((1, 3), (2, 3), (4, 3)))
    return network.plan()


@cache
def stretcher(trt: Any) -> bytes:
    """OUT = the first element of each row of IN, in as many columns as the shape tensor SIZE says: rows and columns."""
    network = Network(trt)
    sent, size = network.input("IN", (-1, 1)), network.input("SIZE", (2,), "INT64")
    sliced = network.definition.add_slice(sent, (0, 0), (1, 1), (1, 1))
    sliced.mode = trt.SampleMode.CLAMP
    sliced.set_input(2, size)
    network.output("OUT", sliced.get_output(0))
    network.profile(IN=((1, 1), (2, 1), (4, 1)), values={"SIZE": ((1, 1), (2, 3), (4, 8))})
    return network.plan()


@cache
def finder(trt: Any) -> bytes:
    """OUT = the places of what is not 0 in IN (1 to 16 elements), one column for each."""
    network = Network(trt)
    actual = network.definition.add_non_zero(network.input("IN", (-1,)))
    network.output("OUT", actual.get_output(0))
    network.profile(IN=((1,), (4,), (16,)))
    return network.plan()


@cache
def image_adder(trt: Any, form: str, kind: str) -> bytes:
    """OUT = IN + IN, 1 to 4 images of 3 channels, 2 rows and 2 columns, in a format of TensorRT."""
    network, dims = Network(trt), (3, 2, 2)
    sent = network.input("IN", (-1, *dims), kind)
    total = network.join("SUM", sent, sent)
    network.output("OUT", total)
    sent.allowed_formats = total.allowed_formats = 1 << int(getattr(trt.TensorFormat, form))
    network.profile(IN=((1, *dims), (2, *dims), (4, *dims)))
    return network.plan()


@cache
def accumulator(trt: Any) -> bytes:
    """OUT = IN + STATE where the sequence does not start, else IN; STATE_OUT = OUT."""
    network = Network(trt)
    sent, start, state = (network.input(name, (-1, 1)) for name in ("IN", "START", "STATE"))
    one = network.definition.add_constant((1, 1), np.ones((1, 1), np.float32)).get_output(0)
    kept = network.join("PROD", state, network.join("SUB", one, start))
    out = network.join("SUM", sent, kept)
    network.output("OUT", out)
    network.output("STATE_OUT", network.definition.add_identity(out).get_output(0))
    bounds = ((1, 1), (2, 1), (4, 1))
    network.profile(IN=bounds, START=bounds, STATE=bounds)
    return network.plan()


BUILDERS: dict[str, Callable[[Any], bytes]] = {
    "add_sub": add_sub,
    "add_sub_half": lambda trt: add_sub(trt, "HALF"),
    "bf16": lambda trt: copier(trt, "BF16"),
    "int32": lambda trt: copier(trt, "INT32"),
    "int64": lambda trt: copier(trt, "INT64"),
    "bool": lambda trt: copier(trt, "BOOL"),
    "stretcher": stretcher,
    "channels_last": lambda trt: image_adder(trt, "HWC8", "HALF"),
    "channels_in_pairs": lambda trt: image_adder(trt, "CHW2", "HALF"),
    "channels_in_thirties": lambda trt: image_adder(trt, "CHW32", "FLOAT"),
    "accumulator": accumulator,
}
"""Those that TensorRT for RTX builds as well; it has nothing whose shape is known after a run only."""
