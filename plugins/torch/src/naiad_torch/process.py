"""Process-wide settings of PyTorch: thread pools, TorchScript options and cuDNN. The first model sets them."""

import logging
import threading
from collections.abc import Callable
from typing import Any

from naiad_torch.parameters import RunSettings
from naiad_torch.runtime import runtime

_Logger = logging.LoggerAdapter[logging.Logger]

_lock = threading.Lock()
_chosen: dict[str, int | bool] = {}


def configure_process(settings: RunSettings, logger: _Logger) -> None:
    """Apply a model's settings; a value that another model has set otherwise stays, with a warning in the log."""
    torch = runtime()
    wishes: tuple[tuple[str, int | bool | None, Callable[[Any], Any] | None], ...] = (
        ("INTRA_OP_THREAD_COUNT", settings.intra_op_threads, torch.set_num_threads),
        ("INTER_OP_THREAD_COUNT", settings.inter_op_threads, torch.set_num_interop_threads),
        ("ENABLE_TENSOR_FUSER", settings.tensor_fuser, _knob("_jit_set_texpr_fuser_enabled")),
        ("ENABLE_JIT_PROFILING", settings.jit_profiling, _knob("_jit_set_profiling_mode")),
        ("ENABLE_JIT_EXECUTOR", settings.jit_executor, _knob("_jit_set_profiling_executor")),
        ("DISABLE_CUDNN", settings.disable_cudnn, _disable_cudnn),
    )
    with _lock:
        for key, wish, choose in wishes:
            if wish is None or _chosen.get(key) == wish:
                continue
            if choose is None:
                logger.warning("%s has no effect: PyTorch %s has no such knob", key, torch.__version__)
                continue
            if key in _chosen:
                logger.warning("%s is %s for the whole process already; %s has no effect", key, _chosen[key], wish)
                continue
            try:
                choose(wish)
            except RuntimeError as error:
                logger.warning("%s cannot be set to %s any more: %s", key, wish, error)
            else:
                _chosen[key] = wish


def _knob(name: str) -> Callable[[Any], Any] | None:
    """A knob of TorchScript, None where PyTorch lacks it: Triton's parameters name them, and none of them is public."""
    return getattr(runtime()._C, name, None)


def _disable_cudnn(disable: bool) -> None:
    """PyTorch knows this for the process alone: `cudnn.flags` around an execution changes it in all threads."""
    runtime().backends.cudnn.enabled = not disable
