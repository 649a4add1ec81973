"""Residence of step outputs: they may stay on the devices of the steps that read them."""

from collections.abc import Collection, Mapping, Sequence

from naiad.servables import Servable
from naiad_config import EnsembleStep, ModelConfig
from naiad_tensors.devices import HOST, Device, DeviceTensor, OnDevice
from naiad_tensors.tensors import Tensor


class Residence:
    """The devices of an ensemble over these versions, as they are when it is bound to them.

    An output that the ensemble answers with as well comes to the host, too, with the batch that made it.
    """

    def __init__(self, config: ModelConfig, versions: Sequence[Servable]) -> None:
        steps = config.ensemble_scheduling.step if config.ensemble_scheduling is not None else ()
        self._readers = _readers(steps, versions)
        self._steps = steps
        self._answers = frozenset(output.name for output in config.output)
        self._usual = [self._of(step, None) for step in steps]

    def of(self, step: int, requested: OnDevice | None) -> OnDevice | None:
        """Where the outputs of that step may stay, None where all come to the host.

        `requested` is where those of the ensemble itself may stay.
        """
        return self._usual[step] if requested is None else self._of(self._steps[step], requested)

    def input_devices(self, name: str) -> frozenset[Device]:
        """The devices of the steps that read that input of the ensemble."""
        return self._readers.get(name, frozenset())

    def answered(self, outputs: dict[str, Tensor], requested: OnDevice | None) -> dict[str, Tensor]:
        """What the ensemble answers with: in host memory, but for what may stay where it is."""
        for name, tensor in outputs.items():
            payload = tensor.payload
            if isinstance(payload, DeviceTensor) and (
                requested is None or payload.device not in requested.get(name, ())
            ):
                outputs[name] = Tensor(name, tensor.datatype, tensor.shape, payload.array)
        return outputs

    def _of(self, step: EnsembleStep, requested: OnDevice | None) -> OnDevice | None:
        residences: dict[str, Collection[Device]] = {}
        for output, name in step.output_map.items():
            devices = self._readers.get(name, frozenset())
            if name in self._answers:
                wish = (HOST,) if requested is None else requested.get(name, (HOST,))
                devices = devices.union(wish)
            if any(device != HOST for device in devices):
                residences[output] = devices
        return residences or None


def _readers(steps: Sequence[EnsembleStep], versions: Sequence[Servable]) -> Mapping[str, frozenset[Device]]:
    """The devices of the steps that read each tensor."""
    devices: dict[str, frozenset[Device]] = {}
    for step, version in zip(steps, versions, strict=True):
        for step_input, name in step.input_map.items():
            devices[name] = devices.get(name, frozenset()) | version.input_devices(step_input)
    return devices
