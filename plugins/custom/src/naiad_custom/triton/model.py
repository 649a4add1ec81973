"""Loaded models of Triton's Python backend: a class TritonPythonModel with execute(requests)."""

import json
from collections.abc import Collection, Mapping
from contextlib import ExitStack
from typing import Any

from naiad.backend import Placement
from naiad.errors import InvalidArgumentError, ModelFailedError, NaiadError
from naiad_config.json import to_json
from naiad_custom.context import PythonContext
from naiad_custom.files import ModelFile
from naiad_custom.loops import loop_of_thread
from naiad_custom.triton.decoupled import DecoupledInstance
from naiad_custom.triton.execution import outside_of_execute
from naiad_custom.triton.instance import TritonInstance
from naiad_tensors.devices import Device, gpu

_CPU_ONLY = "FORCE_CPU_ONLY_INPUT_TENSORS"
_MOST_GPUS = 64
"""More than any machine has."""


class TritonModel:
    """One loaded version; its class is made and initialized once an instance."""

    declares_outputs = False

    def __init__(self, context: PythonContext, file: ModelFile, model: type) -> None:
        if "EXECUTION_ENV_PATH" in context.config.parameters:
            context.logger.warning(
                "EXECUTION_ENV_PATH is not used: the model runs in the server's own environment. Install naiad-process-"
                "workers and drop isolation 'thread', or install here what the model imports"
            )
        self._input_devices = _input_devices(context)
        self._context = context
        self._file = file
        self._class = model

    def instantiate(self, placement: Placement) -> TritonInstance:
        """Make the object there and initialize it.

        Raises ModelFailedError with file, line and what it raised, InvalidArgumentError if the object has no execute.
        """
        config = self._context.config
        with ExitStack() as ends:
            loop = loop_of_thread()
            if loop is not None:
                ends.callback(loop.close)
            model = self._initialized(placement)
            outputs = [output.name for output in config.output]
            close = ends.pop_all().close
        if config.model_transaction_policy is not None and config.model_transaction_policy.decoupled:
            return DecoupledInstance(model, placement, outputs, self._context, self._input_devices, close)
        return TritonInstance(model, placement.name, outputs, self._context.models, self._input_devices, close)

    def _initialized(self, placement: Placement) -> Any:
        try:
            model = self._class()
            if hasattr(model, "initialize"):
                with outside_of_execute():
                    model.initialize(_arguments(self._context, placement))
        except NaiadError:
            raise
        except Exception as error:
            message = f"{self._file.location(error)}: initialize failed: {self._file.describe(error)}"
            raise ModelFailedError(message) from error
        if not callable(getattr(model, "execute", None)):
            path = self._file.path
            raise InvalidArgumentError(f"{path}: TritonPythonModel has no execute(self, requests); write one")
        return model

    def close(self) -> None:
        """Forget the model's modules."""
        self._file.close()


def _input_devices(context: PythonContext) -> Collection[Device]:
    """The GPUs whose tensors the model takes as they are: all or none. Raises InvalidArgumentError."""
    parameter = context.config.parameters.get(_CPU_ONLY)
    value = "yes" if parameter is None else parameter.string_value
    if value not in ("yes", "no"):
        raise InvalidArgumentError(
            f"Incorrect value for {_CPU_ONLY}: '{value}'; for model '{context.config.name}' it can be yes or no"
        )
    return () if value == "yes" else tuple(map(gpu, range(_MOST_GPUS)))


def _arguments(context: PythonContext, placement: Placement) -> Mapping[str, str]:
    """What `initialize` gets; every value is a string."""
    return {
        "model_config": json.dumps(to_json(context.config)),
        "model_instance_kind": placement.kind,
        "model_instance_name": placement.name,
        "model_instance_device_id": str(placement.device),
        "model_repository": str(context.model_directory),
        "model_version": str(context.version),
        "model_name": context.config.name,
    }
