"""A loaded model version: its sessions, shared by instances on a CPU, one for each instance on a GPU."""

import threading
import weakref
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from naiad.backend import MemoryUsage, ModelContext, Placement
from naiad.errors import ConfigError, UnsupportedError
from naiad_config import InstanceKind, ModelConfig
from naiad_kit.backends.interface import Interface, NarrowInputs, mismatches, wanted_outputs, with_shapes_as_rows
from naiad_kit.backends.onnx_runtime import CUDA_PROVIDER
from naiad_onnx.device_runs import device_runs
from naiad_onnx.instance import OnnxInstance
from naiad_onnx.interface import interface_of
from naiad_onnx.parameters import SHRINKAGE, RunSettings
from naiad_onnx.providers import OPENVINO_PROVIDER, providers_for
from naiad_onnx.sessions import open_model, runtime
from naiad_onnx.weights import weight_bytes

_DeviceKey = tuple[str, int]


class OnnxModel:
    """Opens sessions and makes instances over them.

    On a CPU the instances share one session: two of them cost twice the memory and, with a thread pool each, ran an MLP
    at down to a third of the speed. On a GPU each has its own, for TensorRT and CUDA graphs run one batch at a time.
    """

    def __init__(self, context: ModelContext, path: Path, settings: RunSettings) -> None:
        self._config = context.config
        self._path = path
        self._settings = settings
        self._sessions: dict[_DeviceKey, Any] = {}
        # the sessions, and where their weights lie: replaced as a whole, since any thread may read it
        self._opened: tuple[tuple[weakref.ref[Any], _DeviceKey], ...] = ()
        self._opening = threading.Lock()
        self._weights = weight_bytes(path)
        kind, device = _first_device(context.config)
        session = self._session(kind, device)
        self.interface = interface_of(
            session.get_inputs(), session.get_outputs(), session.get_overridable_initializers()
        )
        described = with_shapes_as_rows(self.interface, context.config)
        _check(context, path, described)
        _check_defaults(context.config, session)
        self._narrow = NarrowInputs(context.config, described, path.name)
        self._sessions[kind, device] = session

    def instantiate(self, placement: Placement) -> OnnxInstance:
        """An instance there. Raises NaiadError when ONNX Runtime cannot run the model on that device."""
        session = self._session(placement.kind, placement.device)
        outputs = wanted_outputs(self._config)
        return OnnxInstance(
            session,
            self.interface,
            self._config.name,
            outputs,
            self._run_options(session, placement.device),
            self._narrow,
            device_runs(session, self.interface),
        )

    def memory_usage(self) -> Sequence[MemoryUsage]:
        """The bytes of the weights, once for each session; what a run needs besides is ONNX Runtime's own."""
        opened = Counter(key for session, key in self._opened if session() is not None)
        return [MemoryUsage(kind, device, count * self._weights) for (kind, device), count in sorted(opened.items())]

    def close(self) -> None:
        """Let go of the sessions."""
        self._sessions.clear()

    def _session(self, kind: str, device: int) -> Any:
        """The session of a device: the shared one, or the one that `load` opened there, or a new one."""
        with self._opening:
            shared = self._settings.shared if self._settings.shared is not None else kind == "CPU"
            key = (kind, device)
            session = self._sessions.get(key) if shared else self._sessions.pop(key, None)
            if session is None:
                session = self._open(kind, device)
            if shared:
                self._sessions[key] = session
            return session

    def _open(self, kind: str, device: int) -> Any:
        available = runtime().get_available_providers()
        providers = providers_for(self._config, self._settings, kind, device, available)
        session = open_model(self._path, self._config.name, self._settings, providers)
        living = [each for each in self._opened if each[0]() is not None]
        key = ("GPU", device) if _is_on_gpu(session) else ("CPU", 0)
        self._opened = (*living, (weakref.ref(session), key))
        return session

    def _run_options(self, session: Any, device: int) -> Any:
        options = runtime().RunOptions()
        arenas = ("cpu:0", f"gpu:{device}") if _is_on_gpu(session) else ("cpu:0",)
        shrinks = [arena for arena in self._settings.shrinks if arena in arenas]
        if shrinks:
            options.add_run_config_entry(SHRINKAGE, ";".join(shrinks))
        return options


def _is_on_gpu(session: Any) -> bool:
    return CUDA_PROVIDER in session.get_providers()


def _first_device(config: ModelConfig) -> _DeviceKey:
    """The device of the first instance."""
    if not config.instance_group:
        return "CPU", 0
    group = config.instance_group[0]
    if group.kind is InstanceKind.KIND_GPU:
        return "GPU", group.gpus[0] if group.gpus else 0
    return ("MODEL" if group.kind is InstanceKind.KIND_MODEL else "CPU"), 0


def _check(context: ModelContext, path: Path, interface: Interface) -> None:
    config = context.config
    problems = mismatches(config, interface)
    if problems:
        file = path.relative_to(context.model_directory)
        raise ConfigError([replace(each, message=f"{each.message}, in {file}") for each in problems])
    types = {tensor.type for tensor in (*interface.inputs, *interface.outputs)}
    if {"tensor(bfloat16)", "tensor(string)"} <= types:
        raise UnsupportedError(
            f"model '{config.name}' has both BF16 and string tensors, which the Python interface of ONNX Runtime "
            "cannot take in one run; export it with FP16 or FP32 in place of BF16"
        )


def _check_defaults(config: ModelConfig, session: Any) -> None:
    """OpenVINO takes the defaults of inputs for constants, and gave the same answer whatever was sent."""
    defaults = {default.name for default in session.get_overridable_initializers()}
    sent = next((tensor.name for tensor in config.input if tensor.name in defaults), "")
    if sent and session.get_providers()[0] == OPENVINO_PROVIDER:
        raise UnsupportedError(
            f"input '{sent}' of model '{config.name}' has a default in the model, which OpenVINO takes for a constant; "
            "leave the input out of the configuration, or export the model without its default, or run it without the "
            "execution accelerator 'openvino'"
        )
