"""Parts whose models compute on a device that there is not, and tell what came to the host."""

from collections.abc import Collection, Sequence
from pathlib import Path

import numpy as np

from naiad.backend import Answer, Batch, ModelContext, Placement
from naiad_tensors.devices import Device, gpu
from naiad_testing.devices import FakeDeviceArray

from .parts import Part, Parts

GPU = gpu(0)


class DeviceParts(Parts):
    """Beside the parts on the host there are those `on_gpu`; `made` are the arrays that each of them made."""

    def __init__(self, root: Path) -> None:
        super().__init__(root)
        self.devices: dict[str, Collection[Device]] = {}
        self.arrays: dict[str, list[FakeDeviceArray]] = {}

    def on_gpu(self, name: str, amount: float, device: Device = GPU, more: str = "", **named: str) -> None:
        """A model on the GPU: y is x plus that much."""
        self.devices[name] = (device,)
        self.add(name, named.get("inputs", "x"), "y", self._adder(name, amount, device), more)

    def copies(self, name: str) -> int:
        """How often what a model made was copied to the host."""
        return sum(array.copies for array in self.arrays[name])

    def load(self, context: ModelContext) -> "DevicePart":
        return DevicePart(self, context.config.name)

    def _adder(self, name: str, amount: float, device: Device):  # type: ignore[no-untyped-def]
        def answer(batch: Batch) -> Answer:
            resident = batch.resident("x", self.devices[name])
            parts = [batch.input("x")] if resident is None else [FakeDeviceArray.over(each).memory for each in resident]
            total = FakeDeviceArray(sum(parts[1:], parts[0]) + np.float32(amount), device)
            self.arrays.setdefault(name, []).append(total)
            return {"y": total}

        return answer


class DevicePart(Part):
    """A model of DeviceParts, and its instance."""

    def __init__(self, parts: DeviceParts, name: str) -> None:
        super().__init__(parts, name)
        self.input_devices: Sequence[Device] = tuple(parts.devices.get(name, ()))

    def instantiate(self, placement: Placement) -> "DevicePart":
        return self
