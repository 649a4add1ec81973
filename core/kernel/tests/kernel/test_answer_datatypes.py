"""Answers of every datatype and from every kind of memory."""

from typing import Any

import ml_dtypes
import numpy as np
import pytest

from naiad.backend import Reply
from naiad_tensors.datatypes import TENSOR_TYPES

from .answering import batch, failed, failure, floats, read, responses
from .foreign import Foreign


def test_foreign_byte_order_is_turned_around() -> None:
    (response,) = responses(read({"X": floats(1, 2).astype(">f4")}, batch(1)))

    assert response.outputs["X"].array.dtype == np.dtype("float32")
    assert response.outputs["X"].array.tolist() == [[0, 1]]


def test_lists_are_read_as_arrays() -> None:
    config = 'name: "m" max_batch_size: 1 output { name: "X" data_type: TYPE_INT64 dims: [ 2 ] }'

    (response,) = responses(read({"X": [[1, 2]]}, batch(1), config))

    assert response.outputs["X"].array.tolist() == [[1, 2]]


@pytest.mark.parametrize("wire", sorted(TENSOR_TYPES))
@pytest.mark.parametrize("shape", [(2, 3), (2, 0)])
def test_every_datatype_is_split_full_and_empty(wire: str, shape: tuple[int, ...]) -> None:
    kind = TENSOR_TYPES[wire]
    config = f'name: "m" max_batch_size: 2 output {{ name: "X" data_type: {kind.config.name} dims: [ -1 ] }}'
    array = np.full(shape, b"\0" if wire == "BYTES" else 1, dtype=kind.dtype)

    answers = responses(read({"X": array}, batch(1, 1), config))

    assert [answer.outputs["X"].datatype for answer in answers] == [wire, wire]
    assert [answer.outputs["X"].array.tolist() for answer in answers] == [array[:1].tolist(), array[1:].tolist()]


@pytest.mark.parametrize(
    "text",
    [
        np.array([["a\0", "ä"]], dtype=object),
        np.array([[b"a\0", "ä".encode()]], dtype=object),
        [["a\0", "ä"]],
    ],
    ids=["str", "bytes", "list"],
)
def test_text_becomes_bytes_with_every_nul(text: Any) -> None:
    config = 'name: "m" max_batch_size: 1 output { name: "X" data_type: TYPE_STRING dims: [ 2 ] }'

    (response,) = responses(read({"X": text}, batch(1), config))

    assert response.outputs["X"].array.tolist() == [[b"a\0", "ä".encode()]]


def test_text_that_is_not_unicode_fails_its_own_request_alone() -> None:
    config = 'name: "m" max_batch_size: 2 output { name: "X" data_type: TYPE_STRING dims: [ 1 ] }'
    replies = [Reply({"X": np.array([[text]], dtype=object)}) for text in ("\ud800", "b")]

    outcomes = read(replies, batch(1, 1), config)

    assert "output 'X' cannot be read as an array: UnicodeEncodeError" in failed(outcomes[0])
    assert responses(outcomes[1:])[0].outputs["X"].array.tolist() == [[b"b"]]


def test_bytes_are_not_copied() -> None:
    config = 'name: "m" max_batch_size: 1 output { name: "X" data_type: TYPE_STRING dims: [ 1 ] }'
    array = np.array([[b"a"]], dtype=object)

    (response,) = responses(read({"X": array}, batch(1), config))

    assert response.outputs["X"].payload is array


def test_bfloat16_becomes_bits() -> None:
    config = 'name: "m" max_batch_size: 1 output { name: "X" data_type: TYPE_BF16 dims: [ 1 ] }'

    (response,) = responses(read({"X": np.array([[1.0]], dtype=ml_dtypes.bfloat16)}, batch(1), config))

    assert (response.outputs["X"].datatype, response.outputs["X"].array.tolist()) == ("BF16", [[0x3F80]])


def test_foreign_memory_is_taken_without_a_copy() -> None:
    x = floats(2, 2)

    first, second = responses(read({"X": Foreign(x)}, batch(1, 1)))

    assert first.outputs["X"].array.tolist() == [[0, 1]]
    assert np.shares_memory(second.outputs["X"].array, x)


def test_foreign_memory_that_cannot_be_read_names_the_output() -> None:
    message = failure({"X": Foreign(floats(1, 2), on_device=True)}, batch(1))

    assert message == "model 'batched', output 'X' cannot be read as an array: BufferError: the memory is on a device"


def test_a_ragged_list_names_the_output() -> None:
    assert failure({"X": [[1.0], [1.0, 2.0]]}, batch(2)).startswith("model 'batched', output 'X' cannot be read")
