"""The words for requests that a configuration does not allow."""

import pytest

from naiad.types import Request
from naiad_tensors.tensors import Tensor

from .checking import BATCHED, OPTIONAL, PLAIN, checker, floats, ints, refusal, request
from .foreign import Foreign


def test_a_missing_input_is_named() -> None:
    assert refusal(BATCHED, request(A=floats(1, 2))) == (
        "expected 2 inputs but got 1 inputs for model 'batched'. Got input(s) ['A'], but missing required input(s) "
        "['B']. Please provide all required input(s)."
    )


def test_a_missing_required_input_is_reported_from_optional_ones() -> None:
    message = refusal(OPTIONAL, request(B=floats(1, 1)))

    assert "expected number of inputs between 1 and 3 but got 1 inputs" in message
    assert "missing required input(s) ['A']" in message


def test_an_unknown_input_is_named_with_what_there_is() -> None:
    message = refusal(BATCHED, request(A=floats(1, 2), B=ints(1, 1), Z=ints(1, 1)))

    assert message == "unexpected inference input 'Z' for model 'batched'; its inputs are 'A','B'"


def test_an_input_of_a_model_without_inputs_is_refused_with_a_whole_sentence() -> None:
    message = refusal('name: "empty"', request(A=floats(1, 2)))

    assert message == "unexpected inference input 'A' for model 'empty'; its configuration has no input"


def test_an_unknown_input_in_slot_of_an_optional_one_is_named() -> None:
    assert "unexpected inference input 'Z'" in refusal(OPTIONAL, request(A=floats(1, 1), Z=floats(1, 1)))


def test_another_datatype_is_refused_with_both() -> None:
    message = refusal(BATCHED, request(A=ints(1, 2), B=ints(1, 1)))

    assert message == "inference input 'A' data-type is 'INT32', but model 'batched' expects 'FP32'"


@pytest.mark.parametrize("shape", [(3, 1), (2,), (2, 1, 1), ()])
def test_another_shape_is_refused_with_both(shape: tuple[int, ...]) -> None:
    message = refusal(PLAIN, request(A=floats(*shape)))

    listed = ",".join(map(str, shape))
    assert message == f"unexpected shape for input 'A' for model 'plain'. Expected [2,-1], got [{listed}]."


def test_the_batch_dimension_is_explained_where_a_shape_lacks_it() -> None:
    message = refusal(BATCHED, request(A=floats(2), B=ints(1, 1)))

    assert "Expected [-1,2], got [2]." in message
    assert "max_batch_size is greater than 0" in message


def test_a_scalar_has_no_batch_dimension() -> None:
    assert refusal(BATCHED, request(A=floats(), B=ints(1, 1))) == (
        "input 'A' has no shape but model requires batch dimension for 'batched'"
    )


def test_inputs_of_unequal_batch_sizes_are_refused() -> None:
    message = refusal(BATCHED, request(A=floats(2, 2), B=ints(3, 1)))

    assert message == "input 'B' batch size does not match other inputs for 'batched': 3 against 2"


def test_a_batch_of_nothing_is_refused() -> None:
    message = refusal(BATCHED, request(A=floats(0, 2), B=ints(0, 1)))

    assert message == "input 'A' has batch size 0; model 'batched' needs at least 1"


def test_a_batch_size_that_is_too_large_is_refused_with_the_limit() -> None:
    message = refusal(BATCHED, request(A=floats(5, 2), B=ints(5, 1)))

    assert message == "inference request batch-size must be <= 4 for 'batched', got 5"


def test_an_unknown_output_is_named_with_what_there_is() -> None:
    message = refusal(PLAIN, request(("X", "Z"), A=floats(2, 1)))

    assert message == "unexpected inference output 'Z' for model 'plain'; its outputs are 'X','Y'"


@pytest.mark.parametrize("wrong", [{"priority": -1}, {"timeout": -1}])
def test_priority_and_timeout_are_not_negative(wrong: dict[str, int]) -> None:
    assert refusal(PLAIN, request(A=floats(2, 1), **wrong)) == "'priority' and 'timeout' must not be negative"


@pytest.mark.parametrize(
    "tensor",
    [
        Tensor("A", "FP32", (2, 3), floats(2, 2)),
        Tensor("A", "FP32", (2, -1), floats(2, 2)),
        Tensor("A", "FP32", (2, 2), ints(2, 2)),
    ],
    ids=["shape", "variable", "dtype"],
)
def test_a_tensor_that_contradicts_its_array_is_refused(tensor: Tensor) -> None:
    message = refusal(PLAIN, Request("m", {"A": tensor}))

    assert message.startswith("input 'A' says FP32 [2,")
    assert " and holds " in message


def test_foreign_memory_passes() -> None:
    foreign = Tensor("A", "FP32", (2, 2), Foreign(floats(2, 2)))

    assert checker(PLAIN).check(Request("m", {"A": foreign})) == (1, ((2, 2),))


def test_foreign_memory_needs_a_shape_without_open_dimensions() -> None:
    foreign = Tensor("A", "FP32", (2, -1), Foreign(floats(2, 2)))

    assert refusal(PLAIN, Request("m", {"A": foreign})) == (
        "All input dimensions should be specified for input 'A' for model 'plain', got [2,-1]"
    )
