"""Answers of instances turned into responses, and held against the configuration."""

from typing import Any

import numpy as np
import pytest

from naiad.backend import Reply
from naiad.errors import InvalidArgumentError, ModelFailedError, QueueFullError
from naiad.types import Response

from .answering import batch, failed, failure, floats, ints, read, responses
from .foreign import Foreign


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


def test_an_output_that_was_not_requested_by_name_may_be_left_out() -> None:
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
    message = failure({"X": np.zeros((1, 2), dtype=np.complex64)}, batch(1))

    assert message.startswith("model 'batched', output 'X': arrays of dtype 'complex64' have no datatype")


@pytest.mark.parametrize("shape", [(3, 2), (2, 3), (2,), (2, 2, 1), ()])
def test_another_shape_fails_the_batch(shape: tuple[int, ...]) -> None:
    assert failure({"X": floats(*shape)}, batch(1, 1)) == (
        f"model 'batched' produced shape {list(shape)} for output 'X'; "
        "its configuration and a batch of 2 ask for [2, 2]"
    )


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

    assert "the requested output 'Y'" in failed(outcome)


@pytest.mark.parametrize(
    ("answer", "message"),
    [([], "0 replies"), (None, "NoneType"), (floats(2, 2), "ndarray"), (3, "int")],
    ids=["too few", "none", "array", "number"],
)
def test_an_answer_that_is_invalid_fails_the_batch(answer: Any, message: str) -> None:
    assert failure(answer, batch(1, 1)) == (
        f"model 'batched' answered a batch of 2 requests with {message}; "
        "it must return one array per output, or one reply for each request"
    )


def test_an_error_of_its_kind_reaches_the_caller_as_it_is() -> None:
    mistake = InvalidArgumentError("no such token")

    assert read([mistake], batch(1)) == [mistake]


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
    with pytest.raises(ModelFailedError, match=r"output 'X' has 2 rows"):
        read({"X": floats(2, 2)}, batch(1, 2), strict=False)


@pytest.mark.parametrize("value", [True, 2**64 - 1, -(2**63), 0.5, "text", np.int32(7), np.float32(0.5)])
def test_a_parameter_of_a_response_is_what_protocols_can_carry(value: Any) -> None:
    (answer,) = responses(read([Reply({"X": floats(1, 2)}, {"p": value})], batch(1)))

    assert answer.parameters == {"p": value}


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"p": 2**64}, "the parameter 'p' = 18446744073709551616; use"),
        ({"p": -(2**63) - 1}, "the parameter 'p' = -9223372036854775809; use"),
        ({"p": "\ud800"}, r"the parameter 'p' = '\ud800'; use"),
        ({"p": None}, "the parameter 'p' = None; use a bool, an integer of 64 bits, a float, or text"),
        ({"p": [1]}, r"the parameter 'p' = [1]; use"),
        ({5: 1}, "a parameter of its response the name 5; use text"),
    ],
)
def test_a_parameter_that_no_protocol_can_carry_fails_its_request(parameters: Any, message: str) -> None:
    good, bad = Reply({"X": floats(1, 2)}), Reply({"X": floats(1, 2)}, parameters)

    first, second = read([good, bad], batch(1, 1))

    assert isinstance(first, Response)
    assert failed(second).startswith("model 'batched' gave ")
    assert message in failed(second)
