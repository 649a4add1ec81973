"""The worker kind `process`: which models are isolated, and with which interpreter and limits."""

import re
from typing import Any

from naiad.backend import Backend, BackendTraits, ModelContext
from naiad.errors import InvalidArgumentError
from naiad.extend import MakeWorker
from naiad_config import ModelConfig
from naiad_process_workers.backend import IsolatedBackend
from naiad_process_workers.environments import environment_of, names_environment
from naiad_process_workers.process import Environment, Limits
from naiad_process_workers.workers import ProcessWorker

ISOLATIONS = ("thread", "process")
_UNITS = {"": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30, "t": 1 << 40}


class ProcessKind:
    """Instances in processes, for models with the parameter `isolation`; `default` is that of models without it.

    A Python model that names an environment is isolated unless it says otherwise.
    """

    name = "process"
    choice = ""

    def __init__(self, default: str = "thread") -> None:
        self._default = default

    def worker_for(self, config: ModelConfig, traits: BackendTraits, execute_on: str) -> MakeWorker | None:
        """See `WorkerKind`."""
        if not self._isolates(config, traits):
            return None
        if execute_on:
            raise InvalidArgumentError(
                f"model '{config.name}' has isolation 'process', and cannot execute on '{execute_on}' of the server; "
                "drop one of the parameters 'isolation' and 'execute_on'"
            )
        return ProcessWorker

    def backend_for(self, config: ModelConfig, backend: Backend) -> Backend | None:
        """See `WorkerKind`."""
        return IsolatedBackend(backend, settings_of) if self._isolates(config, backend.traits) else None

    def _isolates(self, config: ModelConfig, traits: BackendTraits) -> bool:
        has_own = traits.name == "python" and names_environment(config)
        isolation = _text(config, "isolation") or ("process" if has_own else self._default)
        if isolation not in ISOLATIONS:
            raise InvalidArgumentError(
                f"parameter 'isolation' of model '{config.name}' is '{isolation}'; it can be {' or '.join(ISOLATIONS)}"
            )
        return isolation == "process"


def settings_of(context: ModelContext) -> tuple[Environment, Limits]:
    """The interpreter and the limits of a model's processes. Raises InvalidArgumentError."""
    config = context.config
    limits = Limits(
        _size(config, "memory_limit"), _seconds(config, "startup_timeout"), _seconds(config, "execution_timeout")
    )
    return environment_of(context), limits


def _text(config: ModelConfig, name: str) -> str:
    parameter = config.parameters.get(name)
    return "" if parameter is None else parameter.string_value.strip()


def _seconds(config: ModelConfig, name: str) -> float:
    text = _text(config, name)
    try:
        seconds = float(text or 0)
    except ValueError:
        seconds = -1.0
    if not 0 <= seconds < 1e9:
        raise _wrong(config, name, text, "a number of seconds, such as 2.5")
    return seconds


def _size(config: ModelConfig, name: str) -> int:
    text = _text(config, name)
    match: Any = re.fullmatch(r"(\d+)\s*([kmgt]?)(i?b)?", text.lower())
    if text and match is None:
        raise _wrong(config, name, text, "a number of bytes, such as 2G")
    return int(match[1]) * _UNITS[match[2]] if text else 0


def _wrong(config: ModelConfig, name: str, text: str, expected: str) -> InvalidArgumentError:
    return InvalidArgumentError(f"parameter '{name}' of model '{config.name}' is '{text}'; it must be {expected}")
