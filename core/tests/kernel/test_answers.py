"""Answers of instances turned into responses, and held against the configuration."""

from typing import Any

import ml_dtypes
import numpy as np
import pytest

from naiad._kernel.answers import AnswerReader, Outcome
from naiad.backend import Answer, Batch, Reply
from naiad.config.text import parse_text
from naiad.datatypes import TENSOR_TYPES
from naiad.errors import InvalidArgumentError, ModelFailedError, NaiadError, QueueFullError
from naiad.types import Request, Response

BATCHED = """
    name: "batched"
    max_batch_size: 8
    output [ { name: "X" data_type: TYPE_FP32 dims: [ 2 ] }, { name: "Y" data_type: TYPE_INT32 dims: [ -1 ] } ]
"""


def floats(*shape: int) -> np.ndarray:
    return np.arange(np.prod(shape), dtype=np.float32).reshape(shape)


def ints(*shape: int) -> np.ndarray:
    return np.arange(np.prod(shape), dtype=np.int32).reshape(shape)


def batch(*sizes: int, requested: tuple[tuple[str, ...], ...] = ()) -> Batch:
    wanted = requested or ((),) * len(sizes)
    requests = [Request("batched", {}, id=str(n), requested=names) for n, names in enumerate(wanted)]
    return Batch(requests, sizes)


def read(answer: Answer, of: Batch, config: str = BATCHED, strict: bool = True) -> list[Outcome]:
    return AnswerReader(parse_text(config), 3, strict).read(answer, of)


def responses(outcomes: list[Outcome]) -> list[Response]:
    assert all(isinstance(outcome, Response) for outcome in outcomes)
    return [outcome for outcome in outcomes if isinstance(outcome, Response)]


def failure(answer: Answer, of: Batch, config: str = BATCHED) -> str:
    with pytest.raises(ModelFailedError) as caught:
        read(answer, of, config)
    return str(caught.value)


def failed(outcome: Outcome) -> str:
    assert isinstance(outcome, NaiadError)
    return str(outcome)


# One array an output for the whole batch


def test_a_request_alone_gets_the_arrays_as_they_came() -> None:
    x, y = floats(2, 2), ints(2, 5)

    (response,) = responses(read({"X": x, "Y": y}, batch(2)))

    assert (response.model_name, response.version, response.id, response.final) == ("batched", 3, "0", True)
    assert response.outputs["X"].payload is x
    assert (response.outputs["Y"].datatype, response.outputs["Y"].shape) == ("INT32", (2, 5))


def test_every_request_gets_its_rows_as_views() -> None:
    x, y = floats(6, 2), ints(6, 1)

    answers = responses(read({"X": x, "Y": y}, batch(1, 3, 2)))

    assert [answer.id for answer in answers] == ["0", "1", "2"]
    assert [answer.outputs["X"].shape for answer in answers] == [(1, 2), (3, 2), (2, 2)]
    assert [answer.outputs["Y"].array.ravel().tolist() for answer in answers] == [[0], [1, 2, 3], [4, 5]]
    assert all(np.shares_memory(answer.outputs["X"].array, x) for answer in answers)


def test_requests_get_the_outputs_they_asked_for() -> None:
    of = batch(1, 1, requested=(("Y",), ()))

    first, second = responses(read({"X": floats(2, 2), "Y": ints(2, 1)}, of))

    assert list(first.outputs) == ["Y"]
    assert list(second.outputs) == ["X", "Y"]


def test_a_requested_output_that_is_not_there_fails_those_who_asked_for_it() -> None:
    of = batch(1, 1, requested=(("X",), ("X", "Y")))

    first, second = read({"X": floats(2, 2)}, of)

    assert isinstance(first, Response)
    assert failed(second) == "model 'batched' did not produce the requested output 'Y'; it produced ['X']"


def test_an_output_that_nobody_asked_for_by_name_may_be_left_out() -> None:
    (response,) = responses(read({"X": floats(1, 2)}, batch(1)))

    assert list(response.outputs) == ["X"]


def test_an_undeclared_output_fails_the_batch() -> None:
    assert failure({"Z": floats(1, 2)}, batch(1)) == (
        "model 'batched' produced output 'Z', which its configuration does not declare; declared are ['X', 'Y']"
    )


def test_another_datatype_fails_the_batch() -> None:
    assert failure({"X": np.zeros((1, 2))}, batch(1)) == (
        "model 'batched' produced FP64 for output 'X', which its configuration declares as FP32"
    )


def test_a_dtype_outside_the_protocol_fails_the_batch() -> None:
    told = failure({"X": np.zeros((1, 2), dtype=np.complex64)}, batch(1))

    assert told.startswith("model 'batched', output 'X': arrays of dtype 'complex64' have no datatype")


@pytest.mark.parametrize("shape", [(3, 2), (2, 3), (2,), (2, 2, 1), ()])
def test_another_shape_fails_the_batch(shape: tuple[int, ...]) -> None:
    assert failure({"X": floats(*shape)}, batch(1, 1)) == (
        f"model 'batched' produced shape {list(shape)} for output 'X'; "
        "its configuration and a batch of 2 ask for [2, 2]"
    )


def test_foreign_byte_order_is_turned_around() -> None:
    (response,) = responses(read({"X": floats(1, 2).astype(">f4")}, batch(1)))

    assert response.outputs["X"].array.dtype == np.dtype("float32")
    assert response.outputs["X"].array.tolist() == [[0, 1]]


def test_lists_are_read_as_arrays() -> None:
    config = 'name: "m" max_batch_size: 1 output { name: "X" data_type: TYPE_INT64 dims: [ 2 ] }'

    (response,) = responses(read({"X": [[1, 2]]}, batch(1), config))

    assert response.outputs["X"].array.tolist() == [[1, 2]]


# Every datatype


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


def test_bytes_are_not_copied() -> None:
    config = 'name: "m" max_batch_size: 1 output { name: "X" data_type: TYPE_STRING dims: [ 1 ] }'
    array = np.array([[b"a"]], dtype=object)

    (response,) = responses(read({"X": array}, batch(1), config))

    assert response.outputs["X"].payload is array


def test_bfloat16_becomes_bits() -> None:
    config = 'name: "m" max_batch_size: 1 output { name: "X" data_type: TYPE_BF16 dims: [ 1 ] }'

    (response,) = responses(read({"X": np.array([[1.0]], dtype=ml_dtypes.bfloat16)}, batch(1), config))

    assert (response.outputs["X"].datatype, response.outputs["X"].array.tolist()) == ("BF16", [[0x3F80]])


class Foreign:
    """A framework's tensor; one on a device cannot be read from the host."""

    def __init__(self, array: np.ndarray, on_device: bool = False) -> None:
        self._array = array
        self._on_device = on_device

    def __dlpack__(self, **options: Any) -> Any:
        if self._on_device:
            raise BufferError("the memory is on a device")
        return self._array.__dlpack__(**options)

    def __dlpack_device__(self) -> tuple[Any, int]:
        return self._array.__dlpack_device__()


def test_foreign_memory_is_taken_without_a_copy() -> None:
    x = floats(2, 2)

    first, second = responses(read({"X": Foreign(x)}, batch(1, 1)))

    assert first.outputs["X"].array.tolist() == [[0, 1]]
    assert np.shares_memory(second.outputs["X"].array, x)


def test_foreign_memory_that_cannot_be_read_names_the_output() -> None:
    told = failure({"X": Foreign(floats(1, 2), on_device=True)}, batch(1))

    assert told == "model 'batched', output 'X' cannot be read as an array: BufferError: the memory is on a device"


def test_a_ragged_list_names_the_output() -> None:
    assert failure({"X": [[1.0], [1.0, 2.0]]}, batch(2)).startswith("model 'batched', output 'X' cannot be read")


# One reply for each request


def test_replies_answer_request_by_request() -> None:
    refused = QueueFullError("come back", retry_after=2.0)
    replies = [Reply({"X": floats(1, 2)}, {"tokens": 7}), refused, Reply({"Y": ints(2, 3)})]

    first, second, third = read(replies, batch(1, 1, 2))

    assert isinstance(first, Response)
    assert (first.id, first.parameters) == ("0", {"tokens": 7})
    assert second is refused
    assert isinstance(third, Response)
    assert third.outputs["Y"].shape == (2, 3)


def test_a_bad_reply_fails_its_own_request_alone() -> None:
    replies: Any = [
        Reply({"X": floats(1, 3)}),
        Reply({"X": floats(1, 2)}),
        Reply({"Z": floats(1, 2)}),
        Reply({"X": Foreign(floats(1, 2), on_device=True)}),
        {"X": floats(1, 2)},
    ]

    outcomes = read(replies, batch(1, 1, 1, 1, 1))

    assert "produced shape [1, 3]" in failed(outcomes[0])
    assert isinstance(outcomes[1], Response)
    assert "produced output 'Z'" in failed(outcomes[2])
    assert "cannot be read as an array" in failed(outcomes[3])
    assert failed(outcomes[4]) == (
        "model 'batched' answered a request with dict; it must be a naiad.backend.Reply or a NaiadError"
    )


def test_a_reply_without_a_requested_output_fails() -> None:
    (outcome,) = read([Reply({"X": floats(1, 2)})], batch(1, requested=(("Y",),)))

    assert "did not produce the requested output 'Y'" in failed(outcome)


@pytest.mark.parametrize(
    ("answer", "told"),
    [([], "0 replies"), (None, "NoneType"), (floats(2, 2), "ndarray"), (3, "int")],
    ids=["too few", "none", "array", "number"],
)
def test_an_answer_that_makes_no_sense_fails_the_batch(answer: Any, told: str) -> None:
    assert failure(answer, batch(1, 1)) == (
        f"model 'batched' answered a batch of 2 requests with {told}; "
        "it must return one array an output, or one reply for each request"
    )


def test_an_error_of_its_kind_reaches_the_caller_as_it_is() -> None:
    mistake = InvalidArgumentError("no such token")

    assert read([mistake], batch(1)) == [mistake]


# Reshape, and models that their configuration does not bind


RESHAPED = """
    name: "reshaped"
    max_batch_size: 4
    output [
      { name: "X" data_type: TYPE_FP32 dims: [ 1 ] reshape { shape: [ ] } },
      { name: "Y" data_type: TYPE_INT32 dims: [ -1, 2 ] reshape { shape: [ 2, -1, 1 ] } }
    ]
"""


def test_clients_see_the_dims_and_the_model_answers_in_the_reshape() -> None:
    x, y = floats(3), ints(3, 2, 5, 1)

    first, second = responses(read({"X": x, "Y": y}, batch(1, 2), RESHAPED))

    assert (first.outputs["X"].shape, first.outputs["Y"].shape) == ((1, 1), (1, 5, 2))
    assert (second.outputs["X"].shape, second.outputs["Y"].shape) == ((2, 1), (2, 5, 2))
    assert np.shares_memory(second.outputs["Y"].array, y)


def test_a_reshaped_output_is_held_against_the_reshape() -> None:
    assert "ask for [1]" in failure({"X": floats(1, 1)}, batch(1), RESHAPED)


def test_reshape_works_without_batching() -> None:
    config = 'name: "m" output { name: "X" data_type: TYPE_FP32 dims: [ 4 ] reshape { shape: [ 2, 2 ] } }'

    (response,) = responses(read({"X": floats(2, 2)}, batch(1), config))

    assert response.outputs["X"].shape == (4,)


def test_an_unbound_model_may_answer_with_other_outputs_datatypes_and_shapes() -> None:
    answer = {"X": np.zeros((2, 9)), "Z": floats(2, 1)}

    first, second = responses(read(answer, batch(1, 1, requested=(("Y",), ())), strict=False))

    assert first.outputs == {}
    assert {name: (tensor.datatype, tensor.shape) for name, tensor in second.outputs.items()} == {"X": ("FP64", (1, 9))}


def test_an_unbound_model_still_answers_every_row() -> None:
    with pytest.raises(ModelFailedError, match=r"output 'X' has 2 rows for a batch of 3"):
        read({"X": floats(2, 2)}, batch(1, 2), strict=False)
