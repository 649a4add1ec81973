"""Strings of very different lengths take memory in proportion to their bytes."""

import tracemalloc

import numpy as np
import pytest

from naiad_openvino.strings import array_of, slices, tensor_of

MIXED = [b"", b"a\0b", b"\xff\xfe", b"x" * 100_000, b"y", *[b"z" * 70_000, b""] * 5, b"end"]


@pytest.mark.parametrize(
    "elements",
    [
        [],
        [b"one"],
        [b"", b""],
        MIXED,
        [b"ab"] * 1000,
        [b"c" * (1 << 20) if index == 500 else b"" for index in range(1000)],
    ],
)
def test_strings_come_back_as_they_were(elements):
    array = np.array([*elements, None], dtype=object)[:-1]

    tensor = tensor_of(array, "IN", "m")

    assert array_of(tensor).tolist() == elements


@pytest.mark.parametrize("shape", [(60,), (60, 1), (1, 60), (2, 2, 15), (3, 20), (15, 2, 2), (2, 30, 1, 1)])
def test_shapes_are_kept(shape):
    array = np.array([str(number).encode() for number in range(60)], dtype=object).reshape(shape)

    tensor = tensor_of(array, "IN", "m")
    back = array_of(tensor)

    assert tuple(tensor.shape) == shape
    assert back.tolist() == array.tolist()


def test_a_tensor_without_elements_keeps_its_shape():
    array = np.empty((0, 3), dtype=object)

    assert array_of(tensor_of(array, "IN", "m")).shape == (0, 3)


@pytest.mark.parametrize("lengths", [[1] * 1000 + [1 << 20], [1 << 20, *[0] * 1000], [0, 1 << 20] * 50, [7] * 5000])
def test_slices_take_memory_in_proportion_to_their_bytes_and_are_few(lengths):
    cuts = list(slices(lengths))

    assert [start for start, _ in cuts] == [0, *(stop for _, stop in cuts)][:-1]
    assert cuts[-1][1] == len(lengths)
    for start, stop in cuts:
        assert (stop - start) * max(lengths[start:stop]) <= 2 * sum(lengths[start:stop]) + (64 << 10)
    assert len(cuts) <= 2 + 2 * sum(length > 1000 for length in lengths)


def test_one_long_string_among_many_empty_ones_takes_about_its_bytes(workbench, zoo):
    size = 256 << 10
    workbench.write(zoo.identity("string", (-1, 100)))
    elements = np.full((1, 100), b"", dtype=object)
    elements[0, 50] = b"x" * size
    loaded = workbench.load()
    loaded.execute({"IN": np.array([[b"a"] * 100], object)})

    tracemalloc.start()
    output = loaded.execute({"IN": elements})["OUT"]
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()

    assert output.tolist() == elements.tolist()
    assert peak < 25 * size  # a fixed-width array alone is 100 times the size, and one of text four times that


def test_strings_of_a_padded_batch_are_filled_up_with_empty_ones(workbench, zoo):
    workbench.write(zoo.identity("string", (4, 2)))

    output = workbench.load("max_batch_size: 4").execute({"IN": np.array([[b"a", b"bc"]], object)})["OUT"]

    assert output.tolist() == [[b"a", b"bc"]]
