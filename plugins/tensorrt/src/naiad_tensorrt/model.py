"""A loaded engine version: opened once per device, with an executor for each instance."""

import threading
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from weakref import WeakSet

from naiad.backend import MemoryUsage, ModelContext, Placement
from naiad.errors import ConfigError, InvalidArgumentError
from naiad_config import ModelInstanceGroup
from naiad_kit.backends.interface import wanted_outputs
from naiad_tensorrt.checking import problems_of
from naiad_tensorrt.engines import OpenEngine, Opening
from naiad_tensorrt.graphs import graph_specs
from naiad_tensorrt.instance import TensorRtInstance
from naiad_tensorrt.interface import as_served
from naiad_tensorrt.machine import Machine
from naiad_tensorrt.parameters import RunSettings
from naiad_tensorrt.plans import plan_path, read_plan

_DeviceKey = tuple[int, int]
"""A device and the core of its deep-learning accelerator, -1 for none."""


class TensorRtModel:
    """Opens the engine and makes instances over it; those on one device share its weights.

    TensorRT allows that from version 10 on, also on one profile; before, each profile had one context.
    """

    def __init__(self, context: ModelContext, settings: RunSettings, machine: Machine) -> None:
        self._context = context
        self._settings = settings
        self._machine = machine
        self._engines: dict[_DeviceKey, OpenEngine] = {}
        self._instances: WeakSet[TensorRtInstance] = WeakSet()
        self._opening = threading.Lock()
        group = context.config.instance_group[0] if context.config.instance_group else ModelInstanceGroup()
        self._engine(group.gpus[0] if group.gpus else 0, _core(group))

    def instantiate(self, placement: Placement) -> TensorRtInstance:
        """An instance there. Raises NaiadError when the engine does not fit that device, or its profiles the group."""
        config, group = self._context.config, placement.group
        opened = self._engine(placement.device, _core(group))
        profiles = tuple(int(text) for text in group.profile) or (0,)
        graphs = graph_specs(config, opened.description, profiles)
        options = replace(self._settings.execution, profiles=profiles, graphs=graphs)
        executor = self._machine.executor(opened, options, placement.device)
        instance = TensorRtInstance(
            executor, opened.description, profiles, wanted_outputs(config), config.name, placement.device
        )
        with self._opening:
            self._instances.add(instance)
        return instance

    def memory_usage(self) -> Sequence[MemoryUsage]:
        """The bytes on each device: the engine's weights once, and what its instances hold."""
        with self._opening:
            held = [(device, opened.weights) for (device, _), opened in self._engines.items()]
            held += [(instance.device, instance.memory_usage()) for instance in self._instances]
        devices = sorted({device for device, _ in held})
        return [MemoryUsage("GPU", each, sum(size for device, size in held if device == each)) for each in devices]

    def close(self) -> None:
        """Let go of the engines."""
        with self._opening:
            self._engines.clear()

    def _engine(self, device: int, core: int) -> OpenEngine:
        """The engine on that device, opened and held against the configuration by the first that asks for it."""
        with self._opening:
            opened = self._engines.get((device, core))
            if opened is None:
                path = plan_path(self._context, self._machine.compute_capability(device))
                opened = open_for(self._context, self._settings, self._machine, device, path, core)
                _check(self._context, opened, path)
                opened = replace(opened, description=as_served(self._context.config, opened.description))
                self._engines[device, core] = opened
            return opened


def open_for(
    context: ModelContext, settings: RunSettings, machine: Machine, device: int, path: Path, core: int = -1
) -> OpenEngine:
    """The engine of a file on a device, with the plugins that the backend's settings and the configuration name.

    Raises NaiadError when it cannot be opened there.
    """
    operations = context.config.model_operations
    own = tuple(
        context.path_inside(name, f"op_library_filename '{name}' of model '{context.config.name}'")
        for name in (operations.op_library_filename if operations is not None else ())
    )
    opening = Opening((*settings.libraries, *own), settings.version_compatible, settings.weight_budget, core)
    return machine.open_engine(read_plan(path), context.config.name, device, opening)


def _check(context: ModelContext, opened: OpenEngine, path: Path) -> None:
    problems = problems_of(context.config, opened.description)
    if problems:
        file = path.relative_to(context.version_directory)
        raise ConfigError([replace(each, message=f"{each.message}, in {file}") for each in problems])


def _core(group: ModelInstanceGroup) -> int:
    """The core of the deep-learning accelerator that the group is for, -1 for none."""
    cores = [each.device_id for each in group.secondary_devices]
    if len(cores) > 1:
        raise InvalidArgumentError(
            f"instance group '{group.name}' names {len(cores)} secondary devices; an engine runs on one core of the "
            "deep-learning accelerator (KIND_NVDLA) at most"
        )
    return int(cores[0]) if cores else -1
