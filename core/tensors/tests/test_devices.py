"""Tensors on devices: looked at where they are, and brought to the host once."""

import weakref
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest

from naiad.errors import InvalidArgumentError, UnavailableError
from naiad_tensors import dlpack
from naiad_tensors.devices import HOST, DeviceTensor, device_of, gpu, is_on_device
from naiad_tensors.tensors import Tensor
from naiad_testing.devices import FakeDeviceArray, fake_driver

FLOATS = np.arange(6, dtype=np.float32).reshape(2, 3)


def test_a_tensor_is_described_where_it_lies() -> None:
    held = FakeDeviceArray(FLOATS, gpu(1))

    tensor = DeviceTensor.of(held)

    assert (tensor.device, tensor.datatype, tensor.shape, tensor.nbytes) == ((2, 1), "FP32", (2, 3), 24)
    assert held.copies == 0


def test_numpy_has_no_way_to_it_but_a_copy() -> None:
    held = FakeDeviceArray(FLOATS)

    with pytest.raises((BufferError, RuntimeError)):
        np.from_dlpack(held)


def test_it_comes_to_the_host_once() -> None:
    held = FakeDeviceArray(FLOATS)
    tensor = DeviceTensor.of(held)

    arrays = [tensor.array, Tensor("x", "FP32", (2, 3), tensor).array, tensor.reshape((6,)).array]

    assert [array.ravel().tolist() for array in arrays] == [FLOATS.ravel().tolist()] * 3
    assert held.copies == 1


def test_views_stay_on_the_device() -> None:
    held = FakeDeviceArray(FLOATS)

    column = DeviceTensor.of(held).reshape((3, 2))[1:3]

    assert isinstance(column, DeviceTensor)
    assert column.shape == (2, 2)
    assert np.shares_memory(FakeDeviceArray.over(column).memory, FLOATS)
    assert column.array.tolist() == [[2, 3], [4, 5]]


def test_what_has_gaps_is_cut_on_the_host() -> None:
    held = FakeDeviceArray(FLOATS[:, ::2])
    tensor = DeviceTensor.of(held)

    row, flat = tensor[0:1], tensor.reshape((4,))

    assert (type(row), type(flat)) == (np.ndarray, np.ndarray)
    assert (np.asarray(row).tolist(), flat.shape, held.copies) == ([[0, 2]], (4,), 1)


def test_views_come_to_the_host_with_all_of_it() -> None:
    held = FakeDeviceArray(FLOATS)
    tensor = DeviceTensor.of(held)

    rows = [tensor[0:1].array, tensor[1:2].array]

    assert [row.tolist() for row in rows] == [[[0, 1, 2]], [[3, 4, 5]]]
    assert held.copies == 1


def test_memory_is_kept_by_views_and_by_arrays_made_of_them() -> None:
    held = FakeDeviceArray(np.array([1, 2, 3, 4], np.float32))
    seen = weakref.ref(held)
    view = DeviceTensor.of(held)[2:4]
    array = np.from_dlpack(OnHost(view))
    del held, view

    assert array.tolist() == [3, 4]
    assert seen() is not None
    del array
    assert seen() is None


def test_a_capsule_that_is_not_taken_frees_what_it_is_over() -> None:
    held = FakeDeviceArray(np.array([1, 2, 3, 4], np.float32))
    seen = weakref.ref(held)
    capsule = DeviceTensor.of(held)[2:4].__dlpack__()
    del held

    assert seen() is not None
    del capsule
    assert seen() is None


def test_many_threads_may_take_views_in() -> None:
    held = FakeDeviceArray(FLOATS)
    view = DeviceTensor.of(held)[1:2]

    with ThreadPoolExecutor(4) as pool:
        rows = list(pool.map(lambda _: FakeDeviceArray.over(view).memory.tolist(), range(400)))

    assert rows == [[[3, 4, 5]]] * 400
    assert dlpack._held == {}


def test_memory_that_no_framework_knows_is_a_tensor() -> None:
    tensor = DeviceTensor.at(FLOATS.ctypes.data, gpu(0), "FP32", (2, 3), FLOATS)

    assert FakeDeviceArray.over(tensor).memory.tolist() == FLOATS.tolist()
    with fake_driver():
        assert tensor.array.tolist() == FLOATS.tolist()
    assert not np.shares_memory(tensor.array, FLOATS)


def test_bf16_comes_as_its_bits() -> None:
    held = FakeDeviceArray(np.array([0x3F80, 0x4000], np.uint16), is_bf16=True)

    tensor = Tensor.of("x", held)

    assert (tensor.datatype, tensor.array.dtype, tensor.array.tolist()) == ("BF16", np.uint16, [0x3F80, 0x4000])


def test_a_tensor_made_of_it_stays_there() -> None:
    held = FakeDeviceArray(FLOATS)

    tensor = Tensor.of("x", held)

    assert (tensor.datatype, tensor.shape, held.copies) == ("FP32", (2, 3), 0)
    assert device_of(tensor) == gpu(0)


def test_another_datatype_is_made_on_the_host() -> None:
    held = FakeDeviceArray(FLOATS)

    tensor = Tensor.of("x", held, "FP64")

    assert (tensor.array.dtype, held.copies) == (np.float64, 1)


@pytest.mark.parametrize("value", [FLOATS, 3, [1.0], "text", FakeDeviceArray(FLOATS, HOST)])
def test_what_the_host_can_read_is_not_on_a_device(value: Any) -> None:
    assert not is_on_device(value)


def test_a_dtype_without_a_name_is_refused() -> None:
    with pytest.raises(InvalidArgumentError, match="type code 5 with 64 bits"):
        DeviceTensor.of(FakeDeviceArray(np.zeros(2, np.complex64)))


def test_gaps_are_seen() -> None:
    assert DeviceTensor.of(FakeDeviceArray(FLOATS)).is_contiguous
    assert not DeviceTensor.of(FakeDeviceArray(FLOATS[:, ::2])).is_contiguous


class OnHost:
    """A tensor on the fake device as numpy takes it: on the host, where it is indeed."""

    def __init__(self, tensor: Any) -> None:
        self._tensor = tensor

    def __dlpack__(self, **_options: Any) -> Any:
        return dlpack.placed(self._tensor.__dlpack__(), HOST)

    def __dlpack_device__(self) -> tuple[int, int]:
        return HOST


def test_the_driver_copies_what_its_framework_does_not() -> None:
    tensor = DeviceTensor.of(FakeDeviceArray(FLOATS, copies_itself=False))

    with fake_driver():
        assert tensor[1:2].array.tolist() == [[3, 4, 5]]


def test_tensors_are_joined_by_the_driver() -> None:
    joined = np.zeros((3, 3), np.float32)
    tensor = DeviceTensor.of(FakeDeviceArray(FLOATS))

    with fake_driver():
        tensor.copy_to(joined.ctypes.data)
        tensor[1:2].copy_to(joined.ctypes.data + tensor.nbytes)

    assert joined.tolist() == [[0, 1, 2], [3, 4, 5], [3, 4, 5]]


def test_what_cannot_be_copied_is_an_error_with_a_next_step() -> None:
    held = FakeDeviceArray(FLOATS, (10, 0), copies_itself=False)

    with pytest.raises(UnavailableError, match=r"FP32\[2, 3\] on device \(10, 0\) cannot come to the host.*dl_device"):
        _ = DeviceTensor.of(held).array
