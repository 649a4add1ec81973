"""Utilization, memory and power of GPUs, read through NVML, the driver's own library, without a CUDA context."""

import ctypes
import functools
from dataclasses import dataclass
from typing import Any

from naiad_tensors.gpus import opened_nvml, visible_gpus


@dataclass(frozen=True, slots=True)
class GpuReading:
    """One GPU at one moment: utilization 0 to 1, bytes, watts and joules; None is what the driver does not tell."""

    uuid: str
    utilization: float | None = None
    memory_total: int | None = None
    memory_used: int | None = None
    power_usage: float | None = None
    power_limit: float | None = None
    energy: float | None = None


class _Utilization(ctypes.Structure):
    _fields_ = (("gpu", ctypes.c_uint), ("memory", ctypes.c_uint))


class _Memory(ctypes.Structure):
    _fields_ = (("total", ctypes.c_ulonglong), ("free", ctypes.c_ulonglong), ("used", ctypes.c_ulonglong))


def read_gpus() -> tuple[GpuReading, ...]:
    """Every visible GPU that the driver identifies. Blocks for milliseconds: call it on a thread."""
    with opened_nvml() as nvml:
        handles = [(handle, _uuid(nvml, handle)) for handle in visible_gpus(nvml)]
        return tuple(_reading(nvml, handle, uuid) for handle, uuid in handles if uuid)


@functools.cache
def gpu_uuids() -> tuple[str, ...]:
    """The UUID of each visible GPU in the order of CUDA's numbers, "" for one that the driver does not identify."""
    with opened_nvml() as nvml:
        return tuple(_uuid(nvml, handle) for handle in visible_gpus(nvml))


def _uuid(nvml: Any, handle: Any) -> str:
    text = ctypes.create_string_buffer(96)
    if handle is None or nvml.nvmlDeviceGetUUID(handle, text, len(text)):
        return ""
    return text.value.decode("ascii", "replace")


def _reading(nvml: Any, handle: Any, uuid: str) -> GpuReading:
    busy = _query(nvml, "nvmlDeviceGetUtilizationRates", handle, _Utilization())
    memory = _query(nvml, "nvmlDeviceGetMemoryInfo", handle, _Memory())
    usage = _query(nvml, "nvmlDeviceGetPowerUsage", handle, ctypes.c_uint())
    limit = _query(nvml, "nvmlDeviceGetPowerManagementLimit", handle, ctypes.c_uint())
    energy = _query(nvml, "nvmlDeviceGetTotalEnergyConsumption", handle, ctypes.c_ulonglong())
    return GpuReading(
        uuid,
        utilization=None if busy is None else busy.gpu / 100,
        memory_total=None if memory is None else memory.total,
        memory_used=None if memory is None else memory.used,
        power_usage=None if usage is None else usage.value / 1000,
        power_limit=None if limit is None else limit.value / 1000,
        energy=None if energy is None else energy.value / 1000,
    )


def _query(nvml: Any, name: str, handle: Any, result: Any) -> Any:
    """The result that this function fills in, None where the GPU or the driver does not support the query."""
    function = getattr(nvml, name, None)
    return result if function is not None and function(handle, ctypes.byref(result)) == 0 else None
