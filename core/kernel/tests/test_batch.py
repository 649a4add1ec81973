"""Batches: the requests one by one, and their inputs joined."""

import numpy as np
import pytest

from naiad.batch import Batch
from naiad.types import Request
from naiad_tensors.tensors import Tensor


def request(*rows: float, requested: tuple[str, ...] = ()) -> Request:
    return Request("m", {"IN": Tensor.of("IN", np.array([[row] for row in rows]))}, requested=requested)


def test_the_input_of_one_request_is_its_own_array() -> None:
    alone = request(1, 2)

    batch = Batch([alone], [2])

    assert batch.input("IN") is alone.inputs["IN"].payload
    assert batch.size == 2
    assert batch.input_done_ns == 0


def test_inputs_are_joined_in_order_and_once() -> None:
    batch = Batch([request(1, 2), request(3)], [2, 1])

    joined = batch.input("IN")

    assert joined.tolist() == [[1], [2], [3]]
    assert batch.input("IN") is joined
    assert (batch.size, batch.sizes) == (3, [2, 1])


def test_the_join_is_the_end_of_compute_input() -> None:
    batch = Batch([request(1), request(2)], [1, 1])

    batch.input("IN")
    joined = batch.input_done_ns
    batch.input("IN")

    assert joined > 0
    assert batch.input_done_ns == joined


def test_a_backend_may_mark_the_borders_itself() -> None:
    batch = Batch([request(1)], [1])

    batch.mark_input_done()
    batch.mark_infer_done()

    assert 0 < batch.input_done_ns <= batch.infer_done_ns


def test_strings_are_joined_with_every_byte() -> None:
    first, second = (
        Request("m", {"IN": Tensor("IN", "BYTES", (1, 1), np.array([[text]], dtype=object))})
        for text in (b"a\0", b"\0\0")
    )

    assert Batch([first, second], [1, 1]).input("IN").tolist() == [[b"a\0"], [b"\0\0"]]


def test_empty_tensors_are_joined() -> None:
    empty = Request("m", {"IN": Tensor.of("IN", np.zeros((1, 0), dtype=np.float32))})

    assert Batch([empty, empty], [1, 1]).input("IN").shape == (2, 0)


def test_a_batch_knows_its_inputs_and_which_outputs_are_wanted() -> None:
    batch = Batch([request(1, requested=("A",)), request(2, requested=("B",))], [1, 1])

    assert batch.input_names == ("IN",)
    assert [name for name in "ABC" if batch.wants(name)] == ["A", "B"]
    assert Batch([request(1)], [1]).wants("C")


def test_an_input_that_the_requests_lack_is_a_key_error() -> None:
    with pytest.raises(KeyError, match="OTHER"):
        Batch([request(1), request(2)], [1, 1]).input("OTHER")
