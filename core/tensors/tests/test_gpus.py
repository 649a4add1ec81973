"""Counting GPUs through the driver's own library."""

import ctypes
from collections.abc import Iterator
from typing import Any

import pytest

from naiad_tensors.gpus import compute_capability, gpu_count


@pytest.fixture(autouse=True)
def forgetting(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Forget before and after each test what was asked of the real driver."""
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    for response in (gpu_count, compute_capability):
        response.cache_clear()
    yield
    for response in (gpu_count, compute_capability):
        response.cache_clear()


class Driver:
    """The functions of libnvidia-ml that are used, with so many GPUs of that compute capability."""

    def __init__(self, gpus: int, capability: tuple[int, int] = (8, 6), broken: str = "") -> None:
        self.open = 0
        self._gpus = gpus
        self._capability = capability
        self._broken = broken

    def nvmlInit_v2(self) -> int:
        self.open += self._broken != "init"
        return int(self._broken == "init")

    def nvmlShutdown(self) -> int:
        self.open -= 1
        return 0

    def nvmlDeviceGetCount_v2(self, count: Any) -> int:
        count._obj.value = self._gpus
        return int(self._broken == "count")

    def nvmlDeviceGetHandleByIndex_v2(self, index: int, handle: Any) -> int:
        handle._obj.value = 100 + index
        return int(self._broken == "device")

    def nvmlDeviceGetHandleByUUID(self, uuid: bytes, handle: Any) -> int:
        handle._obj.value = 100 + int(uuid.removeprefix(b"GPU-"))
        return 0

    def nvmlDeviceGetCudaComputeCapability(self, handle: Any, major: Any, minor: Any) -> int:
        first, second = self._capability
        major._obj.value, minor._obj.value = first + handle.value - 100, second  # each GPU has one of its own
        return 0


@pytest.fixture
def install(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Put a driver, or none, in place of the machine's own."""

    def put(driver: Driver | None) -> None:
        def load(name: str) -> Driver:
            assert name == "libnvidia-ml.so.1"
            if driver is None:
                raise OSError("no such library")
            return driver

        monkeypatch.setattr(ctypes, "CDLL", load)

    return put


def test_without_a_driver_there_is_no_gpu(install: Any) -> None:
    install(None)

    assert gpu_count() == 0
    assert compute_capability() == ""


def test_the_driver_counts_its_gpus_and_is_closed_again(install: Any) -> None:
    driver = Driver(2)
    install(driver)

    assert gpu_count() == 2
    assert compute_capability() == "8.6"
    assert driver.open == 0


@pytest.mark.parametrize(
    ("visible", "capability"), [("1", "9.6"), ("1,0", "9.6"), ("GPU-1", "9.6"), ("0", "8.6"), ("", "")]
)
def test_the_capability_is_that_of_the_first_visible_gpu(
    install: Any, monkeypatch: pytest.MonkeyPatch, visible: str, capability: str
) -> None:
    install(Driver(2))
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", visible)

    assert compute_capability() == capability


@pytest.mark.parametrize(
    ("visible", "count"),
    [("0", 1), ("0,1", 2), ("", 0), ("-1", 0), ("1,-1,0", 1), ("0,1,2,3", 2), (" 1 ", 1), ("0,,1", 1)],
)
def test_gpus_may_be_hidden(install: Any, monkeypatch: pytest.MonkeyPatch, visible: str, count: int) -> None:
    install(Driver(2))
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", visible)

    assert gpu_count() == count


@pytest.mark.parametrize(("broken", "count"), [("init", 0), ("count", 0), ("device", 2)])
def test_a_driver_that_fails_is_taken_for_none(install: Any, broken: str, count: int) -> None:
    driver = Driver(2, broken=broken)
    install(driver)

    assert gpu_count() == count
    assert compute_capability() == ""
    assert driver.open == 0


@pytest.mark.gpu
def test_a_real_gpu_is_counted() -> None:
    assert gpu_count() >= 1
    assert float(compute_capability()) >= 3
