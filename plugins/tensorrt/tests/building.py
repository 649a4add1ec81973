"""Engines that TensorRT for RTX builds, which it does without a GPU too."""

from collections.abc import Sequence
from typing import Any

import tensorrt_rtx_bindings as trt

from naiad_tensorrt.runtime import logger_of

Range = tuple[Sequence[int], Sequence[int], Sequence[int]]


class Building:
    """One network on its way to an engine. Inputs with -1 among their dims need a range for each profile."""

    def __init__(self) -> None:
        self._builder = trt.Builder(logger_of(trt))
        self.network: Any = self._builder.create_network(0)
        self._profiles: list[Any] = []

    def input(self, name: str, *dims: int, kind: Any = trt.float32) -> Any:
        return self.network.add_input(name, kind, dims)

    def output(self, name: str, layer: Any) -> None:
        layer.get_output(0).name = name
        self.network.mark_output(layer.get_output(0))

    def profile(self, values: dict[str, Range] | None = None, **shapes: Range) -> None:
        profile = self._builder.create_optimization_profile()
        for name, bounds in shapes.items():
            profile.set_shape(name, *bounds)
        for name, bounds in (values or {}).items():
            profile.set_shape_input(name, *bounds)
        self._profiles.append(profile)

    def plan(self) -> bytes:
        """The serialised engine."""
        config = self._builder.create_builder_config()
        for profile in self._profiles:
            assert config.add_optimization_profile(profile) >= 0
        plan = self._builder.build_serialized_network(self.network, config)
        assert plan is not None, "TensorRT does not build this network; its log says why"
        return bytes(plan)


def add_sub(
    columns: int = 16, batches: Sequence[tuple[int, int, int]] = ((1, 4, 8),), kind: Any = trt.float32
) -> bytes:
    """SUM = A + B and DIFF = A - B over rows, with a profile for each range of batches."""
    building = Building()
    a, b = (building.input(name, -1, columns, kind=kind) for name in ("A", "B"))
    for name, operation in (("SUM", trt.ElementWiseOperation.SUM), ("DIFF", trt.ElementWiseOperation.SUB)):
        building.output(name, building.network.add_elementwise(a, b, operation))
    for bounds in batches:
        shapes = tuple((rows, columns) for rows in bounds)
        building.profile(A=shapes, B=shapes)
    return building.plan()


def identity(*dims: int, kind: Any = trt.float32) -> bytes:
    """OUT = IN, of a fixed shape."""
    building = Building()
    building.output("OUT", building.network.add_identity(building.input("IN", *dims, kind=kind)))
    return building.plan()


def filled() -> bytes:
    """OUT = IN stretched to the shape in the shape tensor `size`: the batch size and a number of columns."""
    building = Building()
    sent = building.input("IN", -1, 1)
    size = building.input("size", 2, kind=trt.int32)
    layer = building.network.add_slice(sent, (0, 0), (1, 1), (1, 1))
    layer.mode = trt.SampleMode.CLAMP
    layer.set_input(2, size)
    building.output("OUT", layer)
    building.profile(IN=((1, 1), (2, 1), (4, 1)), values={"size": ((1, 1), (2, 8), (4, 16))})
    return building.plan()
