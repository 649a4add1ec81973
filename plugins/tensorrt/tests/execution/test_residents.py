"""Inputs that are on the GPU already."""

import numpy as np
import pytest

from naiad.errors import InvalidArgumentError
from naiad_tensorrt.execution.dlpack import CUDA, is_on_gpu, resident

from .engines import Bench, add_sub, graph, output, profile, rows, tensor


class OnGpu:
    """An array in the memory of a device that is no device, as another framework would hand it on."""

    def __init__(self, cuda, array):
        self.address = cuda.allocate(max(array.nbytes, 1))
        held = cuda.view(self.address, array.nbytes).view(array.dtype).reshape(array.shape)
        held[...] = array
        self.array = held
        self.streams = []

    def __dlpack__(self, *, stream=None):
        self.streams.append(stream)
        return self.array.__dlpack__()

    def __dlpack_device__(self):
        return (CUDA, 0)


def test_a_tensor_on_the_gpu_does_not_pass_through_the_host():
    bench = add_sub()
    executor = bench.executor()
    given = OnGpu(bench.cuda, rows(3))

    answer = executor.run({"A": given, "B": rows(3, 7)}, 0)

    assert answer["SUM"].tolist() == (rows(3) + rows(3, 7)).tolist()
    assert (bench.cuda.calls["copy_on_device"], bench.cuda.calls["copy_to_device"]) == (1, 1)
    assert given.streams == [next(iter(bench.cuda.queues))]


@pytest.mark.parametrize("pinned", [True, False])
def test_parts_on_the_gpu_and_in_host_memory_are_joined(pinned):
    bench = add_sub()
    executor = bench.executor(pinned_input=pinned)
    parts = [rows(1), OnGpu(bench.cuda, rows(2, 10)), rows(1, 20), rows(1, 30), OnGpu(bench.cuda, rows(1, 40))]

    answer = executor.run({"A": parts, "B": np.zeros((6, 4), np.float32)}, 0)

    expected = [rows(1), rows(2, 10), rows(1, 20), rows(1, 30), rows(1, 40)]
    assert answer["SUM"].tolist() == np.concatenate(expected).tolist()


def test_many_parts_that_outgrow_the_staging_memory_are_joined():
    dims = (-1, 100)
    bench = Bench([tensor("X", dims), output("Y", dims)], [profile(0, X=((1, 100), (9, 100)))], lambda x: {"Y": x["X"]})
    parts = [np.full((1, 100), 1, np.float32), OnGpu(bench.cuda, np.full((1, 100), 2, np.float32))]
    parts.append(np.full((3, 100), 3, np.float32))

    answer = bench.executor().run({"X": parts}, 0)

    assert answer["Y"].mean(axis=1).tolist() == [1, 2, 3, 3, 3]


def test_a_tensor_on_the_gpu_is_laid_out_through_the_host():
    dims, form = (1, 3, 2, 2), {"format": "CHW4"}
    bench = Bench(
        [tensor("X", dims, "INT8", **form), output("Y", dims, "INT8", **form)],
        [profile(0, X=(dims, dims))],
        lambda x: {"Y": x["X"]},
    )
    given = np.arange(12, dtype=np.int8).reshape(dims)

    answer = bench.executor().run({"X": OnGpu(bench.cuda, given)}, 0)

    assert answer["Y"].tolist() == given.tolist()


def test_a_tensor_on_the_gpu_fills_a_graph():
    bench = add_sub()
    executor = bench.executor(graphs=(graph({"A": (4, 4), "B": (4, 4)}, {"A": (1, 4), "B": (1, 4)}),))

    answer = executor.run({"A": OnGpu(bench.cuda, rows(3)), "B": OnGpu(bench.cuda, rows(3))}, 0)

    assert answer["SUM"].tolist() == (2 * rows(3)).tolist()
    assert bench.cuda.calls["launch_graph"] == 1


def test_what_lies_with_gaps_on_the_gpu_is_refused():
    bench = add_sub()
    given = OnGpu(bench.cuda, rows(6))
    given.array = given.array[::2]

    with pytest.raises(InvalidArgumentError, match=r"input 'A' lies on the GPU with strides \[8, 1\].* make it contig"):
        bench.executor().run({"A": given, "B": rows(3)}, 0)


def test_another_type_on_the_gpu_is_refused():
    bench = add_sub()

    with pytest.raises(InvalidArgumentError, match=r"input 'A' has elements of DLPack type 0 of 32 bits.*takes FLOAT"):
        bench.executor().run({"A": OnGpu(bench.cuda, rows(2, dtype=np.int32)), "B": rows(2)}, 0)


def test_the_address_of_a_tensor_is_that_of_its_first_element():
    array = np.arange(24, dtype=np.int16).reshape(2, 3, 4)[1:]

    held = resident(array, "x", None)

    assert (held.address, held.shape, held.code, held.bits) == (array.ctypes.data, (1, 3, 4), 0, 16)
    assert held.size == array.nbytes
    assert not is_on_gpu(array, 0)
