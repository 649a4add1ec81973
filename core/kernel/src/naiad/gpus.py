"""How many NVIDIA GPUs this process may use, asked from the driver's own library: no framework, no CUDA context."""

import ctypes
import functools
import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any


@functools.cache
def gpu_count() -> int:
    """The number of visible GPUs; 0 without a driver. `CUDA_VISIBLE_DEVICES` hides GPUs as it does for CUDA."""
    try:
        nvml = ctypes.CDLL("libnvidia-ml.so.1")
    except OSError:
        return 0
    count = ctypes.c_uint()
    if nvml.nvmlInit_v2() != 0:
        return 0
    try:
        found = count.value if nvml.nvmlDeviceGetCount_v2(ctypes.byref(count)) == 0 else 0
    finally:
        nvml.nvmlShutdown()
    visible = os.environ.get("CUDA_VISIBLE_DEVICES")
    if visible is None:
        return found
    return min(found, _listed(visible))


def _listed(visible: str) -> int:
    """How many devices the list names; CUDA stops reading it at the first that is no device."""
    names = [name.strip() for name in visible.split(",")] if visible.strip() else []
    named = 0
    for name in names:
        if not name or name == "-1":
            break
        named += 1
    return named


@functools.cache
def compute_capability(device: int = 0) -> str:
    """The CUDA compute capability of a GPU, as `8.0`; "" when it cannot be told."""
    if device >= gpu_count():
        return ""
    nvml = ctypes.CDLL("libnvidia-ml.so.1")
    handle, major, minor = ctypes.c_void_p(), ctypes.c_int(), ctypes.c_int()
    if nvml.nvmlInit_v2() != 0:
        return ""
    try:
        asked = nvml.nvmlDeviceGetHandleByIndex_v2(device, ctypes.byref(handle)) == 0 and (
            nvml.nvmlDeviceGetCudaComputeCapability(handle, ctypes.byref(major), ctypes.byref(minor)) == 0
        )
    finally:
        nvml.nvmlShutdown()
    return f"{major.value}.{minor.value}" if asked else ""


@functools.cache
def gpu_uuids() -> tuple[str, ...]:
    """The identity of each visible GPU in the order of CUDA's numbers, "" for one that cannot be identified."""
    count = gpu_count()
    if not count:
        return ()
    with opened_nvml() as nvml:
        handles = [device_handle(nvml, device) if nvml is not None else None for device in range(count)]
        return tuple("" if handle is None else uuid_of(nvml, handle) for handle in handles)


@contextmanager
def opened_nvml() -> Iterator[Any]:
    """The driver's library, open; None when it cannot be opened."""
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


def device_handle(nvml: Any, device: int) -> Any:
    """The library's handle for the GPU that CUDA gives that number, None when it cannot be had."""
    names = [name.strip() for name in os.environ.get("CUDA_VISIBLE_DEVICES", "").split(",")]
    name = names[device] if device < len(names) else ""
    handle = ctypes.c_void_p()
    if name.startswith(("GPU-", "MIG-")):
        failed = nvml.nvmlDeviceGetHandleByUUID(name.encode(), ctypes.byref(handle))
    else:
        failed = nvml.nvmlDeviceGetHandleByIndex_v2(int(name) if name.isdigit() else device, ctypes.byref(handle))
    return None if failed else handle


def uuid_of(nvml: Any, handle: Any) -> str:
    """The identity of a GPU (`GPU-…`), "" when it cannot be told."""
    text = ctypes.create_string_buffer(96)
    return "" if nvml.nvmlDeviceGetUUID(handle, text, len(text)) else text.value.decode("ascii", "replace")
