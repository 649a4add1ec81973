"""Utilization, memory and power of GPUs, read through NVML, the driver's own library, without a CUDA context."""

import ctypes
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from naiad.gpus import device_handle, gpu_count, opened_nvml, uuid_of


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
    """Every visible GPU that the driver can identify. Blocks for milliseconds, so it belongs on a thread."""
    count = gpu_count()
    if not count:
        return ()
    with opened_nvml() as nvml:
        return tuple(_readings(nvml, count)) if nvml is not None else ()


def _readings(nvml: Any, count: int) -> Iterator[GpuReading]:
    for device in range(count):
        handle = device_handle(nvml, device)
        uuid = uuid_of(nvml, handle) if handle is not None else ""
        if uuid:
            yield _reading(nvml, handle, uuid)


def _reading(nvml: Any, handle: Any, uuid: str) -> GpuReading:
    busy = _asked(nvml.nvmlDeviceGetUtilizationRates, handle, _Utilization())
    memory = _asked(nvml.nvmlDeviceGetMemoryInfo, handle, _Memory())
    usage = _asked(nvml.nvmlDeviceGetPowerUsage, handle, ctypes.c_uint())
    limit = _asked(nvml.nvmlDeviceGetPowerManagementLimit, handle, ctypes.c_uint())
    energy = _asked(nvml.nvmlDeviceGetTotalEnergyConsumption, handle, ctypes.c_ulonglong())
    return GpuReading(
        uuid,
        utilization=None if busy is None else busy.gpu / 100,
        memory_total=None if memory is None else memory.total,
        memory_used=None if memory is None else memory.used,
        power_usage=None if usage is None else usage.value / 1000,
        power_limit=None if limit is None else limit.value / 1000,
        energy=None if energy is None else energy.value / 1000,
    )


def _asked(function: Callable[[Any, Any], int], handle: Any, result: Any) -> Any:
    """What the function writes into the result, None when this GPU does not tell."""
    return result if function(handle, ctypes.byref(result)) == 0 else None
