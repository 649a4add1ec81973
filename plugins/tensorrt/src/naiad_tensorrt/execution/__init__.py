"""Execution of TensorRT engines on a GPU: an `Executor` for each instance, over an engine that several may share.

An executor has a stream of its own, and a *slot* for each profile and each CUDA graph: an execution context with the
memory of its inputs and outputs, which grows and stays. A batch is fed to a slot, executed or replayed there, and
fetched; nothing of it runs any more when `run` returns or raises. All of CUDA is behind the module `cuda`.
"""

from naiad_tensorrt.execution.cuda import compute_capability, device_count
from naiad_tensorrt.execution.executor import Executor

__all__ = ["Executor", "compute_capability", "device_count"]
