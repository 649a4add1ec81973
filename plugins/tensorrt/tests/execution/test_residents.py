"""Inputs that are on the GPU already."""

import numpy as np
import pytest

from naiad.errors import InvalidArgumentError
from naiad_tensors.devices import gpu
from naiad_testing.devices import FakeDeviceArray

from .engines import Bench, add_sub, graph, output, profile, rows, tensor


def on_gpu(cuda, array, **more):
    """An array in the memory of a device that is no device, as another framework would hand it on."""
    held = cuda.view(cuda.allocate(max(array.nbytes, 1)), array.nbytes).view(array.dtype).reshape(array.shape)
    held[...] = array
    return FakeDeviceArray(held, **more)


def passing_on_chw4():
    """An engine that answers with what it is given, four channels of which lie together."""
    dims, form = (1, 3, 2, 2), {"format": "CHW4"}
    return Bench(
        [tensor("X", dims, "INT8", **form), output("Y", dims, "INT8", **form)],
        [profile(0, X=(dims, dims))],
        lambda x: {"Y": x["X"]},
    )


def test_a_tensor_on_the_gpu_does_not_pass_through_the_host():
    bench = add_sub()
    executor = bench.executor()
    sent = on_gpu(bench.cuda, rows(3))

    answer = executor.run({"A": sent, "B": rows(3, 7)}, 0)

    assert answer["SUM"].tolist() == (rows(3) + rows(3, 7)).tolist()
    assert (bench.cuda.calls["copy_on_device"], bench.cuda.calls["copy_to_device"]) == (1, 1)
    assert sent.copies == 0


@pytest.mark.parametrize("pinned", [True, False])
def test_parts_on_the_gpu_and_in_host_memory_are_joined(pinned):
    bench = add_sub()
    executor = bench.executor(pinned_input=pinned)
    parts = [rows(1), on_gpu(bench.cuda, rows(2, 10)), rows(1, 20), rows(1, 30), on_gpu(bench.cuda, rows(1, 40))]

    answer = executor.run({"A": parts, "B": np.zeros((6, 4), np.float32)}, 0)

    expected = [rows(1), rows(2, 10), rows(1, 20), rows(1, 30), rows(1, 40)]
    assert answer["SUM"].tolist() == np.concatenate(expected).tolist()


def test_many_parts_that_outgrow_the_staging_memory_are_joined():
    dims = (-1, 100)
    bench = Bench([tensor("X", dims), output("Y", dims)], [profile(0, X=((1, 100), (9, 100)))], lambda x: {"Y": x["X"]})
    parts = [np.full((1, 100), 1, np.float32), on_gpu(bench.cuda, np.full((1, 100), 2, np.float32))]
    parts.append(np.full((3, 100), 3, np.float32))

    answer = bench.executor().run({"X": parts}, 0)

    assert answer["Y"].mean(axis=1).tolist() == [1, 2, 3, 3, 3]


def test_a_tensor_on_the_gpu_is_laid_out_through_the_host():
    bench = passing_on_chw4()
    sent = np.arange(12, dtype=np.int8).reshape(1, 3, 2, 2)

    answer = bench.executor().run({"X": on_gpu(bench.cuda, sent)}, 0)

    assert answer["Y"].tolist() == sent.tolist()


def test_a_tensor_on_the_gpu_fills_a_graph():
    bench = add_sub()
    executor = bench.executor(graphs=(graph({"A": (4, 4), "B": (4, 4)}, {"A": (1, 4), "B": (1, 4)}),))

    answer = executor.run({"A": on_gpu(bench.cuda, rows(3)), "B": on_gpu(bench.cuda, rows(3))}, 0)

    assert answer["SUM"].tolist() == (2 * rows(3)).tolist()
    assert bench.cuda.calls["launch_graph"] == 1


def test_what_lies_with_gaps_on_the_gpu_comes_by_way_of_the_host():
    bench = add_sub()
    sent = on_gpu(bench.cuda, rows(6))
    sent.memory = sent.memory[::2]

    answer = bench.executor().run({"A": sent, "B": rows(3)}, 0)

    assert answer["SUM"].tolist() == (rows(6)[::2] + rows(3)).tolist()
    assert sent.copies == 1


def test_the_memory_of_another_gpu_comes_by_way_of_the_host():
    bench = add_sub()
    elsewhere = FakeDeviceArray(rows(2), gpu(1))

    answer = bench.executor().run({"A": elsewhere, "B": rows(2)}, 0)

    assert answer["SUM"].tolist() == (2 * rows(2)).tolist()
    assert elsewhere.copies == 1


@pytest.mark.parametrize("is_bf16", [True, False])
def test_bf16_on_the_gpu_is_taken_as_what_it_is_and_as_bits(is_bf16):
    bench = add_sub("BF16")
    bits = rows(2, dtype=np.uint16)

    answer = bench.executor().run({"A": on_gpu(bench.cuda, bits, is_bf16=is_bf16), "B": bits}, 0)

    assert answer["SUM"].tolist() == (2 * bits).tolist()
    assert bench.cuda.calls["copy_on_device"] == 1


def test_another_type_on_the_gpu_is_refused():
    bench = add_sub()

    with pytest.raises(InvalidArgumentError, match=r"input 'A' has elements of INT32, and the engine takes FLOAT"):
        bench.executor().run({"A": on_gpu(bench.cuda, rows(2, dtype=np.int32)), "B": rows(2)}, 0)


def test_an_output_stays_on_the_gpu_for_as_long_as_it_is_held():
    bench = add_sub()
    executor = bench.executor()
    first = executor.run({"A": rows(2), "B": rows(2)}, 0, stay=("SUM",))
    second = executor.run({"A": rows(3, 9), "B": rows(3)}, 0, stay=("SUM",))

    kept = [answer["SUM"] for answer in (first, second)]

    assert [(each.device, each.datatype, each.shape) for each in kept] == [
        (gpu(0), "FP32", (2, 4)),
        (gpu(0), "FP32", (3, 4)),
    ]
    assert held_at(bench.cuda, kept[0]).tolist() == (2 * rows(2)).tolist()
    assert held_at(bench.cuda, kept[1]).tolist() == (rows(3, 9) + rows(3)).tolist()
    assert isinstance(first["DIFFERENCE"], np.ndarray)


def test_memory_of_outputs_that_is_not_referenced_is_used_again():
    bench = add_sub()
    executor = bench.executor()
    for _ in range(5):
        answer = executor.run({"A": rows(2), "B": rows(2)}, 0, stay=("SUM",))
        address = answer["SUM"].address
        del answer

    assert executor.run({"A": rows(2), "B": rows(2)}, 0, stay=("SUM",))["SUM"].address == address
    assert bench.cuda.calls["allocate"] == 5
    assert executor.memory_usage() == 5 * 256 + 1000


def test_an_output_outlives_the_executor():
    bench = add_sub()
    executor = bench.executor()
    kept = executor.run({"A": rows(2), "B": rows(2)}, 0, stay=("SUM",))["SUM"]

    executor.close()
    held = held_at(bench.cuda, kept).tolist()
    del kept

    assert held == (2 * rows(2)).tolist()
    assert bench.cuda.open == 0


def test_an_output_that_stayed_is_an_input_of_the_next_run():
    bench = add_sub()
    executor = bench.executor()
    kept = executor.run({"A": rows(2), "B": rows(2)}, 0, stay=("SUM",))["SUM"]

    answer = executor.run({"A": kept, "B": [rows(1), rows(1)]}, 0)

    assert answer["SUM"].tolist() == (2 * rows(2) + np.concatenate([rows(1), rows(1)])).tolist()
    assert bench.cuda.calls["copy_to_host"] == 3


def test_the_rows_of_a_graph_that_were_filled_up_do_not_stay():
    bench = add_sub()
    executor = bench.executor(graphs=(graph({"A": (4, 4), "B": (4, 4)}, {"A": (1, 4), "B": (1, 4)}),))

    kept = executor.run({"A": rows(3), "B": rows(3)}, 0, stay=("SUM",))["SUM"]

    assert kept.shape == (3, 4)
    assert held_at(bench.cuda, kept).tolist() == (2 * rows(3)).tolist()


def test_an_output_that_lies_in_another_order_comes_to_the_host():
    bench = passing_on_chw4()
    sent = np.arange(12, dtype=np.int8).reshape(1, 3, 2, 2)

    answer = bench.executor().run({"X": sent}, 0, stay=("Y",))

    assert isinstance(answer["Y"], np.ndarray)
    assert answer["Y"].tolist() == sent.tolist()


def held_at(cuda, kept):
    return cuda.view(kept.address, kept.nbytes).view(np.float32).reshape(kept.shape)
