"""Executing engines of TensorRT on a GPU."""

from naiad_tensorrt.execution.cuda import compute_capability, device_count
from naiad_tensorrt.execution.executor import Executor

__all__ = ["Executor", "compute_capability", "device_count"]
