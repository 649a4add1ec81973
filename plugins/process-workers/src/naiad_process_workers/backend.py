"""Isolated backend: completes and loads the models of another backend in processes; the server has their proxies."""

import threading
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, fields, replace
from itertools import count
from typing import Any
from weakref import WeakSet

from naiad.backend import Backend, BackendTraits, Instance, MemoryUsage, Model, ModelContext, Placement
from naiad_config import ModelConfig, ModelParameter
from naiad_config.text import parse_text
from naiad_config.text_writer import to_text
from naiad_kit.metrics import MetricsApi
from naiad_process_workers.instance import ProcessInstance
from naiad_process_workers.messages import Kind
from naiad_process_workers.process import Environment, Limits, ModelProcess
from naiad_process_workers.resident_memory import MemoryPart, ResidentMemoryService

SettingsOf = Callable[[ModelContext], tuple[Environment, Limits]]
"""The interpreter and the limits of a model's processes. Raises NaiadError for a configuration that is wrong."""


@dataclass(frozen=True, slots=True)
class IsolatedTraits(BackendTraits):
    """The traits of a backend whose models load in processes; `isolation` says whether each instance has its own."""

    isolation: str = "process"

    @classmethod
    def of(cls, traits: BackendTraits, isolation: str) -> "IsolatedTraits":
        """Those of a backend, for whose models `instantiate` may be called concurrently now."""
        values = {field.name: getattr(traits, field.name) for field in fields(BackendTraits)}
        return cls(**{**values, "loads_in_parallel": True}, isolation=isolation)


class IsolatedBackend:
    """Completes and loads the models of another backend, each in a process. One for each model that is prepared.

    With the isolation `model` all instances of a version live in one process, else each has its own.
    """

    def __init__(self, backend: Backend, settings_of: SettingsOf, isolation: str) -> None:
        self.traits: BackendTraits = IsolatedTraits.of(backend.traits, isolation)
        self._address = _address(backend)
        self._in_parallel = backend.traits.loads_in_parallel
        self._settings_of = settings_of
        self._shares = isolation == "model"
        self._completed: ModelProcess | None = None

    def complete(self, context: ModelContext) -> ModelConfig:
        """The configuration with what the model's files declare; its process is kept for `load`."""
        process = ModelProcess(context, *self._settings_of(context))
        try:
            config = parse_text(process.step(Kind.COMPLETE, _described(context), self._address))
        except BaseException:
            process.close()
            raise
        self.forget(context)
        self._completed = process
        return config

    def load(self, context: ModelContext) -> "IsolatedModel":
        """Load a version in a process."""
        settings = self._settings_of(context)
        process, self._completed = self._completed, None
        if process is not None and process.context.version_directory != context.version_directory:
            process.close()
            process = None
        if self._shares:
            return SharingModel(context, settings, self._address, process, self._in_parallel)
        return IsolatedModel(context, settings, self._address, process)

    def forget(self, context: ModelContext) -> None:
        """End the process of `complete`: no load follows."""
        process, self._completed = self._completed, None
        if process is not None:
            process.close()


class DeclaringBackend:
    """A backend that reads in a model's files where its instances live; `isolated(isolation)` is the one for that.

    `isolated` returns None for `thread`. What the files say becomes the parameter `isolation` of the configuration.
    """

    def __init__(self, backend: Backend, default: str, isolated: Callable[[str], IsolatedBackend | None]) -> None:
        self._backend = backend
        self._isolated = isolated
        self._chosen = isolated(default) or backend
        self.traits: BackendTraits = self._chosen.traits

    def complete(self, context: ModelContext) -> ModelConfig:
        """Choose, and complete the configuration with that."""
        declared: str = self._backend.isolation_of(context)  # type: ignore[attr-defined]
        if declared:
            self._chosen = self._isolated(declared) or self._backend
            self.traits = self._chosen.traits
            parameters = {**context.config.parameters, "isolation": ModelParameter(string_value=declared)}
            context = replace(context, config=replace(context.config, parameters=parameters))
        return self._chosen.complete(context)

    def load(self, context: ModelContext) -> Model:
        """Load a version with the backend that `complete` chose."""
        return self._chosen.load(context)

    def forget(self, context: ModelContext) -> None:
        """No load follows."""
        forget = getattr(self._chosen, "forget", None)
        if forget is not None:
            forget(context)


class IsolatedModel:
    """One version of a model; each of its instances has a process, which has loaded it."""

    def __init__(
        self,
        context: ModelContext,
        settings: tuple[Environment, Limits],
        address: Sequence[str],
        process: ModelProcess | None,
    ) -> None:
        self._context = context
        self._settings = settings
        self._address = address
        self._lock = threading.Lock()
        self._processes: WeakSet[ModelProcess] = WeakSet()
        self._outputs = [each.name for each in context.config.output]
        batching = context.config.sequence_batching
        if batching is not None:
            self._outputs += [state.output_name for state in batching.state]
        loaded, self.declares_outputs = self._loaded(process)
        self._spare: ModelProcess | None = loaded

    def instantiate(self, placement: Placement) -> Instance:
        """Make an instance in a process of its own."""
        with self._lock:
            process, self._spare = self._spare, None
        if process is None:
            process, _ = self._loaded(None)
        try:
            members, process.memory_usage = process.step(Kind.INSTANTIATE, *self._described(placement))
        except BaseException:
            process.close()
            raise
        self._serves(process, placement)
        return ProcessInstance(placement.name, process, process.work, 0, self._outputs, *members)

    def memory_usage(self) -> Sequence[MemoryUsage]:
        """What the model said in each of its processes when the last instance there was made."""
        total: Counter[tuple[str, int]] = Counter()
        for process in list(self._processes):
            if not process.has_ended:
                total.update({(kind, device): size for kind, device, size in process.memory_usage})
        return [MemoryUsage(kind, device, size) for (kind, device), size in sorted(total.items())]

    def close(self) -> None:
        """End the process that no instance has used."""
        with self._lock:
            process, self._spare = self._spare, None
        if process is not None:
            process.close()

    def _serves(self, process: ModelProcess, placement: Placement | None) -> None:
        """The process runs an instance from now on: that of the placement, None for one of several."""
        self._processes.add(process)
        part = self._context.parts.get(ResidentMemoryService.name)
        if isinstance(part, MemoryPart):
            part.add(process, placement)

    def _described(self, placement: Placement) -> list[Any]:
        groups = self._context.config.instance_group
        index = groups.index(placement.group) if placement.group in groups else len(groups)
        return [[placement.name, placement.kind, placement.device, index]]

    def _loaded(self, process: ModelProcess | None) -> tuple[ModelProcess, bool]:
        process = process or ModelProcess(self._context, *self._settings)
        process.serve(self._context)
        try:
            return process, bool(process.step(Kind.LOAD, _described(self._context), self._address))
        except BaseException:
            process.close()
            raise


class SharingModel(IsolatedModel):
    """One version of a model, whose instances live in one process, each on a thread of its own there.

    They are made one after the other unless `in_parallel`.
    """

    _numbers = count(1)

    def __init__(
        self,
        context: ModelContext,
        settings: tuple[Environment, Limits],
        address: Sequence[str],
        process: ModelProcess | None,
        in_parallel: bool,
    ) -> None:
        super().__init__(context, settings, address, process)
        self._turn: AbstractContextManager[object] = nullcontext() if in_parallel else threading.Lock()

    def instantiate(self, placement: Placement) -> Instance:
        """Make an instance in the process of all; in a new one if that has ended."""
        with self._lock:
            process = self._spare
            if process is None or process.has_ended:
                if process is not None:
                    process.end()
                self._spare = None
                process, _ = self._loaded(None)
                self._spare = process
        index = next(self._numbers)
        work = process.attach(index)
        try:
            with self._turn:
                members, process.memory_usage = process.step(Kind.INSTANTIATE, *self._described(placement), work=work)
        except BaseException:
            process.detach(work)  # to close the link alone would end the process, and with it the other instances
            raise
        self._serves(process, None)
        return ProcessInstance(placement.name, process, work, index, self._outputs, *members)


def _address(backend: Backend) -> Sequence[str]:
    """Where a process finds the backend: a package and a name there, or a module, a class and its code's folder."""
    module, directory = type(backend).__module__, backend.traits.code_directory
    if directory is not None:
        return [module, type(backend).__qualname__, str(directory)]
    return [module.partition(".")[0], backend.traits.name, ""]


def _described(context: ModelContext) -> list[Any]:
    return [
        to_text(context.config),
        context.version,
        str(context.model_directory),
        str(context.version_directory),
        dict(context.settings),
        context.compute_capability,
        MetricsApi.name in context.parts,
    ]
