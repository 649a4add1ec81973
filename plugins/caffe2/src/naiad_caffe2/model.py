"""One loaded version of a model: translated once, with a session for each device that its instances are on."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from naiad.backend import MemoryUsage, ModelContext, Placement
from naiad.errors import ConfigError, InvalidArgumentError
from naiad_caffe2.files import Nets
from naiad_caffe2.instance import Caffe2Instance
from naiad_caffe2.interface import given_inputs, interface_of
from naiad_caffe2.net import Translated, translate
from naiad_caffe2.sessions import Device, device_of, devices_of, open_session
from naiad_caffe2.translation.arguments import TranslationError
from naiad_config import ModelConfig
from naiad_kit.backends.interface import Interface, mismatches, wanted_outputs
from naiad_kit.backends.onnx_runtime import SessionSettings


class Caffe2Model:
    """Opens a session for each device, which the instances there share."""

    def __init__(self, context: ModelContext, nets: Nets, settings: SessionSettings) -> None:
        self._config = context.config
        translated, interface = describe(context.config, nets)
        problems = mismatches(context.config, interface)
        if problems:
            raise ConfigError([replace(each, message=f"{each.message}, in {nets.path.name}") for each in problems])
        names = wanted_outputs(context.config)
        model, weights = translated.model(names)
        self._outputs = {name: translated.outputs[name].value for name in names}
        self._bytes = sum(array.nbytes for array in weights.values())
        self._bytes += sum(len(each.raw_data) for each in model.graph.initializer)
        self._sessions: dict[Device, Any] = {
            device: open_session(model, weights, context.config.name, settings, device)
            for device in devices_of(context.config)
        }

    def instantiate(self, placement: Placement) -> Caffe2Instance:
        """An instance over the session of its device."""
        session = self._sessions[device_of(placement.kind, placement.device)]
        return Caffe2Instance(session, self._config.name, self._outputs)

    def memory_usage(self) -> Sequence[MemoryUsage]:
        """The weights, on every device that they are on; what a run needs besides is ONNX Runtime's own."""
        return [MemoryUsage(kind, device, self._bytes) for kind, device in self._sessions]

    def close(self) -> None:
        """Let go of the sessions."""
        self._sessions.clear()


def describe(config: ModelConfig, nets: Nets) -> tuple[Translated, Interface]:
    """The translated net, and both its sides.

    Raises ConfigError for what the configuration must say of the inputs, InvalidArgumentError for what cannot be
    translated, with the operator and its place.
    """
    inputs = given_inputs(config, nets)
    try:
        translated = translate(nets.net, nets.init, inputs)
    except TranslationError as error:
        raise InvalidArgumentError(f"failed to load model '{config.name}' from '{nets.path.name}': {error}") from error
    return translated, interface_of(config, translated, inputs)
