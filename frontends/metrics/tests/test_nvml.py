"""What the driver tells of the GPUs."""

import ctypes
from collections.abc import Iterator
from typing import Any

import pytest

from naiad_metrics.nvml import GpuReading, gpu_uuids, read_gpus


@pytest.fixture(autouse=True)
def forgetting(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Forget before and after each test what was asked of the real driver."""
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    gpu_uuids.cache_clear()
    yield
    gpu_uuids.cache_clear()


class Driver:
    """libnvidia-ml with two GPUs; the functions named in `broken` fail."""

    def __init__(self, *broken: str) -> None:
        self.open = 0
        self._broken = broken

    def __getattr__(self, name: str) -> Any:
        return lambda *arguments: 999 if name in self._broken else getattr(self, f"_{name}")(*arguments)

    def _nvmlInit_v2(self) -> int:
        self.open += 1
        return 0

    def _nvmlShutdown(self) -> int:
        self.open -= 1
        return 0

    def _nvmlDeviceGetCount_v2(self, count: Any) -> int:
        count._obj.value = 2
        return 0

    def _nvmlDeviceGetHandleByIndex_v2(self, index: int, handle: Any) -> int:
        handle._obj.value = 100 + index
        return 0

    def _nvmlDeviceGetHandleByUUID(self, uuid: bytes, handle: Any) -> int:
        handle._obj.value = int(uuid.removeprefix(b"GPU-"))
        return 0

    def _nvmlDeviceGetUUID(self, handle: Any, text: Any, length: int) -> int:
        text.value = b"GPU-%d" % handle.value
        return 0

    def _nvmlDeviceGetUtilizationRates(self, handle: Any, rates: Any) -> int:
        rates._obj.gpu = 37
        return 0

    def _nvmlDeviceGetMemoryInfo(self, handle: Any, memory: Any) -> int:
        memory._obj.total, memory._obj.used = 2**37, 2**30
        return 0

    def _nvmlDeviceGetPowerUsage(self, handle: Any, milliwatts: Any) -> int:
        milliwatts._obj.value = 123_400
        return 0

    def _nvmlDeviceGetPowerManagementLimit(self, handle: Any, milliwatts: Any) -> int:
        milliwatts._obj.value = 700_000
        return 0

    def _nvmlDeviceGetTotalEnergyConsumption(self, handle: Any, millijoules: Any) -> int:
        millijoules._obj.value = 5_000_000_500
        return 0


@pytest.fixture
def install(monkeypatch: pytest.MonkeyPatch) -> Any:
    def put(driver: Driver) -> Driver:
        monkeypatch.setattr(ctypes, "CDLL", lambda name: driver)
        return driver

    return put


def test_every_gpu_is_reported_in_the_units_of_the_metrics(install: Any) -> None:
    driver = install(Driver())

    readings = read_gpus()

    assert [reading.uuid for reading in readings] == ["GPU-100", "GPU-101"]
    assert readings[0] == GpuReading("GPU-100", 0.37, 2**37, 2**30, 123.4, 700.0, 5_000_000.5)
    assert driver.open == 0


def test_what_a_gpu_does_not_report_is_left_out(install: Any) -> None:
    driver = install(Driver("nvmlDeviceGetPowerUsage", "nvmlDeviceGetTotalEnergyConsumption"))

    first, _ = read_gpus()

    assert (first.power_usage, first.energy, first.utilization) == (None, None, 0.37)
    assert driver.open == 0


def test_what_an_older_driver_does_not_have_is_left_out(install: Any) -> None:
    class OlderDriver(Driver):
        def __getattr__(self, name: str) -> Any:
            if name == "nvmlDeviceGetTotalEnergyConsumption":
                raise AttributeError(name)
            return super().__getattr__(name)

    install(OlderDriver())

    first, _ = read_gpus()

    assert (first.energy, first.power_usage) == (None, 123.4)


@pytest.mark.parametrize("broken", ["nvmlInit_v2", "nvmlDeviceGetCount_v2", "nvmlDeviceGetUUID"])
def test_a_driver_that_fails_tells_nothing(install: Any, broken: str) -> None:
    install(Driver(broken))

    assert read_gpus() == ()


@pytest.mark.parametrize(
    ("visible", "uuids"),
    [("1,0", ("GPU-101", "GPU-100")), ("GPU-7", ("GPU-7",)), ("0", ("GPU-100",)), ("", ())],
)
def test_gpus_are_known_by_the_numbers_that_cuda_gives_them(
    install: Any, monkeypatch: pytest.MonkeyPatch, visible: str, uuids: tuple[str, ...]
) -> None:
    install(Driver())
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", visible)

    assert gpu_uuids() == uuids
    assert tuple(reading.uuid for reading in read_gpus()) == uuids


@pytest.mark.gpu
def test_a_real_gpu_tells_everything() -> None:
    first = read_gpus()[0]

    assert first.uuid.startswith("GPU-")
    assert first.memory_total > first.memory_used > 0
    assert 0 <= first.utilization <= 1
    assert first.power_limit > 0
