"""A loaded model version: its programs, one per device or one per instance."""

import ctypes
import threading
import weakref
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from naiad.backend import MemoryUsage, ModelContext, Placement
from naiad.errors import ConfigError, InvalidArgumentError
from naiad_config import ModelConfig
from naiad_torch.devices import device_of
from naiad_torch.files import read_artefact
from naiad_torch.gpu import pinned_of
from naiad_torch.instance import TorchInstance
from naiad_torch.interface import contradictions
from naiad_torch.parameters import RunSettings
from naiad_torch.plan import Plan, plan_of
from naiad_torch.process import configure_process
from naiad_torch.program import Artefact, Program
from naiad_torch.runtime import runtime
from naiad_torch.unlocked import TESTED_VERSIONS, is_tested


class TorchModel:
    """Opens programs and makes instances over them.

    Raises NaiadError when the file cannot be loaded, or the configuration does not fit the model.
    """

    def __init__(self, context: ModelContext, path: Path, settings: RunSettings) -> None:
        self._name = context.config.name
        self._settings = settings
        configure_process(settings, context.logger)
        if settings.releases_lock and not is_tested():
            context.logger.warning(
                "RELEASE_INTERPRETER_LOCK has no effect with PyTorch %s: it is tested with %s",
                runtime().__version__,
                ", ".join(TESTED_VERSIONS),
            )
        self._library = _initialised(context, settings.init_library)
        try:
            self._artefact, self._plan = _read(context, path, settings)
        except BaseException:
            self._finish()
            raise
        self._pinned = pinned_of(context.config)
        self._buffers = _state_buffers(context.config)
        self._lock = threading.Lock()
        self._shared: dict[str, Program] = {}
        self._programs: tuple[weakref.ref[Program], ...] = ()  # which live as long as their instances

    def instantiate(self, placement: Placement) -> TorchInstance:
        """An instance there. Raises NaiadError when PyTorch does not have the device or cannot load the model there."""
        device = device_of(placement, self._pinned, self._settings.compile is not None, self._buffers)
        with self._lock:
            program = self._shared.get(device.name)
            if program is None:
                program = self._artefact.open(device.name)
                living = [each for each in self._programs if each() is not None]
                self._programs = (*living, weakref.ref(program))
                if self._settings.shares_weights:
                    self._shared[device.name] = program
        device.isolates = program.in_place
        return TorchInstance(program, self._plan, self._name, device, self._settings)

    def memory_usage(self) -> Sequence[MemoryUsage]:
        """The bytes of the weights on each device."""
        programs = [program for each in self._programs if (program := each()) is not None]
        weights = dict(weight for program in programs for weight in program.weights())
        bytes_of: Counter[tuple[str, int]] = Counter()
        for usage in weights.values():
            bytes_of[usage.type, usage.id] += usage.byte_size
        return [MemoryUsage(kind, index, size) for (kind, index), size in sorted(bytes_of.items())]

    def close(self) -> None:
        """Free the programs, and unregister the model from the library that knows it."""
        self._programs = ()
        self._shared.clear()
        del self._artefact
        self._finish()

    def _finish(self) -> None:
        if self._library is not None:
            self._library.triton_pytorch_model_fini()


def _read(context: ModelContext, path: Path, settings: RunSettings) -> tuple[Artefact, Plan]:
    """The model file, and how it is called. Raises NaiadError when it cannot be, or the configuration does not fit."""
    artefact = read_artefact(path, context, settings)
    plan = plan_of(context.config, artefact)
    problems = contradictions(context.config, artefact, path.name)
    if problems:
        raise ConfigError(problems)
    for kind in plan.guessed:
        context.logger.warning(
            "the %s of model '%s' are taken in the order of the configuration: their names are neither those of "
            "the model nor of the form <name>__<index>",
            kind,
            context.config.name,
        )
    return artefact, plan


def _state_buffers(config: ModelConfig) -> frozenset[str]:
    """The inputs that are states with one buffer for input and output, which the model may write to."""
    states = config.sequence_batching.state if config.sequence_batching is not None else ()
    return frozenset(state.input_name for state in states if state.use_same_buffer_for_input_output)


def _initialised(context: ModelContext, library: str) -> ctypes.CDLL | None:
    """The library of the parameter MODEL_INIT_LIBRARY, after its function has prepared the process.

    Raises InvalidArgumentError when it is not in the model's folder, cannot be loaded, or fails.
    """
    if not library:
        return None
    start = f"MODEL_INIT_LIBRARY '{library}' of model '{context.config.name}'"
    path = context.path_inside(library, start)
    try:
        loaded = ctypes.CDLL(str(path))
        result = loaded.triton_pytorch_model_init(str(context.version_directory).encode(), -1)
    except (OSError, AttributeError) as error:
        raise InvalidArgumentError(f"{start} cannot be used: {error}") from error
    if result:
        raise InvalidArgumentError(f"{start} failed with {result}")
    return loaded
