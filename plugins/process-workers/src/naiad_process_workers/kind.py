"""The worker kind `process`: which models are isolated, and with which interpreter and limits."""

import logging
import re
from dataclasses import replace
from functools import cached_property, partial
from typing import Any

from naiad.backend import Backend, BackendTraits, ModelContext
from naiad.errors import InvalidArgumentError
from naiad.extend import MakeWorker
from naiad_config import ModelConfig
from naiad_process_workers.backend import DeclaringBackend, IsolatedBackend, IsolatedTraits
from naiad_process_workers.environments import environment_of, has_environment, text_of
from naiad_process_workers.memory_groups import MemoryGroups, memory_groups
from naiad_process_workers.process import Environment, Limits
from naiad_process_workers.workers import ProcessWorker

ISOLATIONS = ("thread", "process", "model")
"""Where instances live: on threads of the server, in a process each, in one process for all of a model's."""

_CGROUPS = "a memory_limit counts the memory that a process and its children use: each process gets a cgroup"
_ADDRESS_SPACE = "a memory_limit is one of address space, for this server may not create memory cgroups"
_logger = logging.getLogger("naiad.model")

_UNITS = {"": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30, "t": 1 << 40}


class ProcessKind:
    """Instances in processes, for models with the parameter `isolation`; `default` is that of models without it.

    A Python model with an environment of its own is isolated unless it says otherwise; `builds` says whether
    environments are built from a requirements.txt.
    """

    name = "process"
    choice = ""

    def __init__(self, default: str = "thread", builds: bool = False) -> None:
        self._default = default
        self._builds = builds

    def worker_for(self, config: ModelConfig, traits: BackendTraits, execute_on: str) -> MakeWorker | None:
        """See `WorkerKind`."""
        if not isinstance(traits, IsolatedTraits):
            return None
        if execute_on:
            raise InvalidArgumentError(
                f"model '{config.name}' has isolation '{traits.isolation}', and cannot execute on '{execute_on}' of "
                "the server; drop one of the parameters 'isolation' and 'execute_on'"
            )
        return ProcessWorker

    def backend_for(self, context: ModelContext, backend: Backend) -> Backend | None:
        """See `HostingKind`. What the configuration does not say, a backend with `isolation_of` may know."""
        isolated = partial(self._isolated, backend)
        isolation = _configured(context.config)
        default = "process" if has_environment(context, backend.traits, self._builds) else self._default
        if not isolation and hasattr(backend, "isolation_of"):
            return DeclaringBackend(backend, default, isolated)
        return isolated(isolation or default)

    def _isolated(self, backend: Backend, isolation: str) -> IsolatedBackend | None:
        if isolation == "thread":
            return None
        settings = partial(self._settings, traits=backend.traits)
        return IsolatedBackend(backend, settings, isolation)

    def _settings(self, context: ModelContext, traits: BackendTraits) -> tuple[Environment, Limits]:
        """The interpreter and the limits of a model's processes. Raises InvalidArgumentError."""
        limits = limits_of(context.config)
        if limits.memory:
            limits = replace(limits, groups=self._groups)
        return environment_of(context, traits, self._builds), limits

    @cached_property
    def _groups(self) -> MemoryGroups | None:
        groups = memory_groups()
        _logger.info("%s (docs/isolation.md)", _ADDRESS_SPACE if groups is None else _CGROUPS)
        return groups


def _configured(config: ModelConfig) -> str:
    """The parameter of a model, "" without it. Raises InvalidArgumentError."""
    isolation = text_of(config, "isolation")
    if isolation and isolation not in ISOLATIONS:
        raise InvalidArgumentError(
            f"parameter 'isolation' of model '{config.name}' is '{isolation}'; it can be {' or '.join(ISOLATIONS)}"
        )
    return isolation


def limits_of(config: ModelConfig) -> Limits:
    """The limits of a model's processes. Raises InvalidArgumentError."""
    return Limits(
        _size(config, "memory_limit"), _seconds(config, "startup_timeout"), _seconds(config, "execution_timeout")
    )


def _seconds(config: ModelConfig, name: str) -> float:
    text = text_of(config, name)
    try:
        seconds = float(text or 0)
    except ValueError:
        seconds = -1.0
    if not 0 <= seconds < 1e9:
        raise _wrong(config, name, text, "a number of seconds, such as 2.5")
    return seconds


def _size(config: ModelConfig, name: str) -> int:
    text = text_of(config, name)
    match: Any = re.fullmatch(r"(\d+)\s*([kmgt]?)(i?b)?", text.lower())
    if text and match is None:
        raise _wrong(config, name, text, "a number of bytes, such as 2G")
    return int(match[1]) * _UNITS[match[2]] if text else 0


def _wrong(config: ModelConfig, name: str, text: str, expected: str) -> InvalidArgumentError:
    return InvalidArgumentError(f"parameter '{name}' of model '{config.name}' is '{text}'; it must be {expected}")
