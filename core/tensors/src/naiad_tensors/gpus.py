"""The number of NVIDIA GPUs and their compute capability, from NVML, the driver's own library (no CUDA context)."""

import ctypes
import functools
import os
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import takewhile
from typing import Any


@functools.cache
def gpu_count() -> int:
    """The number of visible GPUs; 0 without a driver. `CUDA_VISIBLE_DEVICES` hides GPUs as it does for CUDA."""
    with opened_nvml() as nvml:
        count = ctypes.c_uint()
        if nvml is None or nvml.nvmlDeviceGetCount_v2(ctypes.byref(count)) != 0:
            return 0
    visible = os.environ.get("CUDA_VISIBLE_DEVICES")
    if visible is None:
        return count.value
    names = (name.strip() for name in visible.split(","))
    return min(count.value, len(list(takewhile(lambda name: name not in ("", "-1"), names))))


@functools.cache
def compute_capability(device: int = 0) -> str:
    """The CUDA compute capability of a GPU, as `8.0`; "" if it is unknown."""
    if device >= gpu_count():
        return ""
    handle, major, minor = ctypes.c_void_p(), ctypes.c_int(), ctypes.c_int()
    with opened_nvml() as nvml:
        known = (
            nvml is not None
            and nvml.nvmlDeviceGetHandleByIndex_v2(device, ctypes.byref(handle)) == 0
            and nvml.nvmlDeviceGetCudaComputeCapability(handle, ctypes.byref(major), ctypes.byref(minor)) == 0
        )
    return f"{major.value}.{minor.value}" if known else ""


@contextmanager
def opened_nvml() -> Iterator[Any]:
    """NVML, the driver's library (`libnvidia-ml.so.1`), open during the block; None if it cannot be opened."""
    try:
        nvml = ctypes.CDLL("libnvidia-ml.so.1")
    except OSError:
        nvml = None
    if nvml is None or nvml.nvmlInit_v2() != 0:
        yield None
        return
    try:
        yield nvml
    finally:
        nvml.nvmlShutdown()
