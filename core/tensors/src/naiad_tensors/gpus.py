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
def compute_capability() -> str:
    """The CUDA compute capability of the first visible GPU, as `8.0`; "" if it is unknown."""
    major, minor = ctypes.c_int(), ctypes.c_int()
    with opened_nvml() as nvml:
        handle = next(iter(visible_gpus(nvml)), None)
        known = (
            handle is not None
            and nvml.nvmlDeviceGetCudaComputeCapability(handle, ctypes.byref(major), ctypes.byref(minor)) == 0
        )
    return f"{major.value}.{minor.value}" if known else ""


def visible_gpus(nvml: Any) -> list[Any]:
    """The handles of NVML in the order of CUDA's numbers, None for a GPU without one; no GPU without NVML."""
    count = ctypes.c_uint()
    if nvml is None or nvml.nvmlDeviceGetCount_v2(ctypes.byref(count)) != 0:
        return []
    visible = os.environ.get("CUDA_VISIBLE_DEVICES")
    if visible is None:
        names = [str(device) for device in range(count.value)]
    else:
        listed = (name.strip() for name in visible.split(","))
        names = list(takewhile(lambda name: name not in ("", "-1"), listed))[: count.value]
    return [_handle(nvml, device, name) for device, name in enumerate(names)]


def _handle(nvml: Any, device: int, name: str) -> Any:
    handle = ctypes.c_void_p()
    if name.startswith(("GPU-", "MIG-")):
        failed = nvml.nvmlDeviceGetHandleByUUID(name.encode(), ctypes.byref(handle))
    else:
        failed = nvml.nvmlDeviceGetHandleByIndex_v2(int(name) if name.isdigit() else device, ctypes.byref(handle))
    return None if failed else handle


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
