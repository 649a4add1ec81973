"""The best classes of an output."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from naiad.errors import InvalidArgumentError
from naiad_kit.frontends.classification import best_classes
from naiad_tensors.tensors import Tensor


def classes(values, count, dtype=np.float32, labels=(), batched=False):
    return best_classes(Tensor.of("Y", np.array(values, dtype)), count, labels, batched)


def test_the_largest_come_first_with_their_indices():
    tensor = classes([1.0, 3.3, 2.0], 2)

    assert (tensor.shape, tensor.array.tolist()) == ((2,), [b"3.300000:1", b"2.000000:2"])


def test_integers_are_plain():
    assert classes([-5, 200, 7], 3, np.int16).array.tolist() == [b"200:1", b"7:2", b"-5:0"]


def test_unsigned_integers_keep_their_order():
    assert classes([0, 2**64 - 1], 1, np.uint64).array.tolist() == [b"18446744073709551615:1"]


def test_of_equal_values_the_smaller_index_comes_first():
    assert classes([4, 4, 9, 4], 3, np.int32).array.tolist() == [b"9:2", b"4:0", b"4:1"]


def test_not_a_number_comes_last():
    assert classes([np.nan, -1.0, np.inf], 3).array.tolist() == [b"inf:2", b"-1.000000:1", b"nan:0"]
    assert classes([np.nan, -np.inf, np.nan], 3).array.tolist() == [b"-inf:1", b"nan:0", b"nan:2"]


def test_a_label_that_is_empty_is_none():
    assert classes([3, 2, 1], 3, np.int32, labels=("", "two")).array.tolist() == [b"3:0", b"2:1:two", b"1:2"]


def test_more_classes_than_elements_give_all():
    assert classes([1, 2], 10, np.int32).shape == (2,)


@given(
    st.lists(st.sampled_from([0.0, -0.0, 1.0, 2.5, -3.0, np.nan, np.inf, -np.inf]), min_size=1, max_size=30),
    st.integers(1, 31),
    st.sampled_from([np.float32, np.float64, np.int8, np.uint64]),
)
def test_the_best_are_the_first_of_all_in_order(values, count, dtype):
    if dtype in (np.int8, np.uint64):
        values = np.abs(np.nan_to_num(values, nan=5, posinf=7, neginf=9))
    row = np.array(values, dtype)

    order = sorted(range(len(row)), key=lambda index: (np.isnan(row[index]), -float(row[index]), index))
    order = [index for index in order if not np.isnan(row[index])] + [i for i in range(len(row)) if np.isnan(row[i])]

    best = classes(row, count, dtype).array.tolist()
    assert [int(each.rpartition(b":")[2]) for each in best] == order[:count]


def test_only_the_best_of_many_are_sorted(monkeypatch):
    sizes = []
    argsort = np.argsort
    monkeypatch.setattr(np, "argsort", lambda keys, **options: sizes.append(len(keys)) or argsort(keys, **options))

    best = classes(np.arange(1_000_000), 2).array.tolist()

    assert (best, sizes) == ([b"999999.000000:999999", b"999998.000000:999998"], [2])


def test_each_entry_of_a_batch_has_its_own():
    tensor = classes([[1, 2], [4, 3]], 1, np.int32, labels=("no", "yes"), batched=True)

    assert tensor.shape == (2, 1)
    assert tensor.array.tolist() == [[b"2:1:yes"], [b"4:0:no"]]


def test_an_entry_of_several_dimensions_counts_as_one_row():
    assert classes([[[1, 2], [3, 4]]], 1, np.int32, batched=True).array.tolist() == [[b"4:3"]]


@pytest.mark.parametrize(
    ("shape", "batched", "expected"), [((2, 0), True, (2, 0)), ((0, 3), True, (0, 3)), ((0,), False, (0,))]
)
def test_nothing_has_no_classes(shape, batched, expected):
    tensor = best_classes(Tensor.of("Y", np.zeros(shape, np.float32)), 5, (), batched)

    assert tensor.shape[0] == expected[0]
    assert tensor.array.size == 0


def test_a_huge_output_is_refused():
    with pytest.raises(InvalidArgumentError, match="classification output tensor too large"):
        best_classes(Tensor.of("Y", np.zeros(1_000_001, np.int8)), 1, (), False)


@pytest.mark.parametrize("datatype", ["BYTES", "BOOL", "FP16", "BF16"])
def test_a_datatype_without_classes_is_refused(datatype):
    tensor = Tensor("Y", datatype, (1,), np.zeros(1, np.uint16))

    with pytest.raises(InvalidArgumentError, match=f"due to unsupported type '{datatype}'"):
        best_classes(tensor, 1, (), False)
