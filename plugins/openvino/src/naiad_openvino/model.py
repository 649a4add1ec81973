"""A loaded model version: compiled once, with an infer request for each instance."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from naiad.backend import MemoryUsage, ModelContext, Placement
from naiad.errors import ConfigError, InvalidArgumentError, UnsupportedError
from naiad_config import InstanceKind
from naiad_kit.backends.interface import Interface, NarrowInputs, mismatches, wanted_outputs
from naiad_openvino.files import make_core, read_model
from naiad_openvino.instance import OpenVinoInstance, Ports
from naiad_openvino.interface import batching_interface, fixed_batch, port_indices, weight_bytes
from naiad_openvino.parameters import RunSettings
from naiad_openvino.runtime import describe_error


class OpenVinoModel:
    """Compiles the model and makes instances over it; those share its weights and its threads."""

    def __init__(self, context: ModelContext, path: Path, settings: RunSettings) -> None:
        config = context.config
        self._config = config
        core = make_core(context, settings)
        _check_devices(context, core.available_devices, settings)
        model = read_model(core, path, config, settings)
        self._fixed_batch = fixed_batch(model) if config.max_batch_size > 0 else 0
        interface = _checked(context, path, model, self._fixed_batch, settings)
        self._narrow = NarrowInputs(config, interface, path.name)
        self._weight_bytes = weight_bytes(model)
        try:
            self._compiled = core.compile_model(model, settings.device, dict(settings.properties))
        except Exception as error:
            raise InvalidArgumentError(
                f"failed to load model '{config.name}' from '{path.name}' on {settings.device}: {describe_error(error)}"
            ) from error
        self._pads = settings.pads
        self._on_cpu = settings.device == "CPU"
        inputs, outputs = port_indices(self._compiled.inputs), port_indices(self._compiled.outputs)
        types = [tensor.type for tensor in interface.inputs], [tensor.type for tensor in interface.outputs]
        self._ports = Ports(
            {name: (index, types[0][index]) for name, index in inputs.items()},
            {name: (outputs[name], types[1][outputs[name]]) for name in wanted_outputs(config)},
        )

    def instantiate(self, placement: Placement) -> OpenVinoInstance:
        """An instance with a request of its own. Raises UnsupportedError for a GPU of another maker."""
        if placement.kind == "GPU":
            raise UnsupportedError(
                f"instance '{placement.name}' needs an NVIDIA GPU, which OpenVINO does not use; use KIND_CPU, and the "
                "parameter TARGET_DEVICE for Intel's devices"
            )
        padded_to = self._fixed_batch if self._pads else 0
        return OpenVinoInstance(self._compiled, self._config.name, self._ports, self._narrow, padded_to)

    def memory_usage(self) -> Sequence[MemoryUsage]:
        """The bytes of the weights, which all instances share; those on a device other than the CPU are not known."""
        return [MemoryUsage("CPU", 0, self._weight_bytes)] if self._on_cpu else []

    def close(self) -> None:
        """Let go of the compiled model."""
        del self._compiled


def _check_devices(context: ModelContext, available: list[str], settings: RunSettings) -> None:
    first = settings.device.partition(":")[0].partition(".")[0]
    known = {each.partition(".")[0] for each in available} | {"AUTO", "MULTI", "HETERO", "BATCH"}
    if first not in known:
        raise UnsupportedError(
            f"model '{context.config.name}' needs TARGET_DEVICE '{settings.device}'; OpenVINO finds "
            f"{', '.join(available)} on this machine"
        )
    if any(group.kind is InstanceKind.KIND_GPU for group in context.config.instance_group):
        raise UnsupportedError(
            f"model '{context.config.name}' has instances of KIND_GPU, which are NVIDIA's; OpenVINO computes on the "
            "CPU, or on the device that the parameter TARGET_DEVICE names; use KIND_CPU"
        )


def _checked(context: ModelContext, path: Path, model: Any, fixed: int, settings: RunSettings) -> Interface:
    """The interface of the model. Raises NaiadError where the configuration does not fit it."""
    config, interface = context.config, batching_interface(model, context.config)
    problems = mismatches(config, interface)
    if problems:
        raise ConfigError([replace(each, message=f"{each.message}, in {path.name}") for each in problems])
    if fixed and fixed < config.max_batch_size:
        raise InvalidArgumentError(
            f"model '{config.name}' has the fixed batch dimension {fixed}, and max_batch_size is "
            f"{config.max_batch_size}; lower it, or remove the parameter SKIP_OV_DYNAMIC_BATCHSIZE"
        )
    if fixed and not settings.pads:
        context.logger.warning(
            "model '%s' takes batches of exactly %d: smaller ones fail without the parameter ENABLE_BATCH_PADDING",
            config.name,
            fixed,
        )
    return interface
