"""Requests held against a model's configuration: what passes, and the words for what does not."""

from typing import Any

import numpy as np
import pytest

from naiad._kernel.requests import RequestChecker
from naiad.config.text import parse_text
from naiad.datatypes import TENSOR_TYPES
from naiad.errors import InvalidArgumentError
from naiad.types import Request, Tensor

PLAIN = """
    name: "plain"
    input { name: "A" data_type: TYPE_FP32 dims: [ 2, -1 ] }
    output [ { name: "X" data_type: TYPE_FP32 dims: [ -1 ] }, { name: "Y" data_type: TYPE_FP32 dims: [ -1 ] } ]
"""
BATCHED = """
    name: "batched"
    max_batch_size: 4
    input [ { name: "A" data_type: TYPE_FP32 dims: [ 2 ] }, { name: "B" data_type: TYPE_INT32 dims: [ -1 ] } ]
    output { name: "X" data_type: TYPE_FP32 dims: [ 2 ] }
"""
OPTIONAL = """
    name: "optional"
    max_batch_size: 4
    input [
      { name: "A" data_type: TYPE_FP32 dims: [ 1 ] },
      { name: "B" data_type: TYPE_FP32 dims: [ 1 ] optional: true },
      { name: "C" data_type: TYPE_FP32 dims: [ -1 ] optional: true }
    ]
"""


def checker(config: str) -> RequestChecker:
    return RequestChecker(parse_text(config))


def request(requested: tuple[str, ...] = (), priority: int = 0, timeout: int = 0, **inputs: Any) -> Request:
    tensors = {name: Tensor.of(name, value) for name, value in inputs.items()}
    return Request("m", tensors, requested=requested, priority=priority, timeout_microseconds=timeout)


def floats(*shape: int) -> np.ndarray:
    return np.zeros(shape, dtype=np.float32)


def ints(*shape: int) -> np.ndarray:
    return np.zeros(shape, dtype=np.int32)


def refusal(config: str, bad: Request) -> str:
    with pytest.raises(InvalidArgumentError) as caught:
        checker(config).check(bad)
    return str(caught.value)


# What passes


@pytest.mark.parametrize("length", [0, 1, 300])
def test_a_variable_dimension_takes_every_length(length: int) -> None:
    assert checker(PLAIN).check(request(A=floats(2, length))) == (1, ((2, length),))


def test_the_batch_size_is_the_first_dimension() -> None:
    batch_size, _ = checker(BATCHED).check(request(A=floats(3, 2), B=ints(3, 5)))

    assert batch_size == 3


def test_inputs_may_come_in_any_order() -> None:
    batch_size, _ = checker(BATCHED).check(request(B=ints(3, 5), A=floats(3, 2)))

    assert batch_size == 3


def test_a_model_without_inputs_has_batches_of_one() -> None:
    assert checker('name: "source" max_batch_size: 8').check(request()) == (1, None)


@pytest.mark.parametrize("wire", sorted(TENSOR_TYPES))
@pytest.mark.parametrize("shape", [(1, 2), (1, 0)])
def test_every_datatype_passes_full_and_empty(wire: str, shape: tuple[int, ...]) -> None:
    kind = TENSOR_TYPES[wire]
    array = np.full(shape, b"\0" if wire == "BYTES" else 1, dtype=kind.dtype)
    given = Request("m", {"A": Tensor("A", wire, shape, array)})

    config = f'name: "m" max_batch_size: 1 input {{ name: "A" data_type: {kind.config.name} dims: [ -1 ] }}'

    assert checker(config).check(given)[0] == 1


def test_known_outputs_may_be_requested() -> None:
    assert checker(PLAIN).check(request(("Y", "X"), A=floats(2, 1)))[0] == 1


# Which requests may share a batch


def test_fixed_dims_let_all_requests_share_a_batch() -> None:
    config = 'name: "m" max_batch_size: 4 input { name: "A" data_type: TYPE_FP32 dims: [ 2 ] }'

    assert checker(config).check(request(A=floats(1, 2)))[1] is None


def test_variable_dims_of_other_lengths_may_not_share_a_batch() -> None:
    batched = checker(BATCHED)

    keys = [
        batched.check(request(A=floats(size, 2), B=ints(size, length)))[1] for size, length in [(1, 5), (3, 5), (1, 6)]
    ]

    assert keys[0] == keys[1]
    assert keys[0] != keys[2]


def test_ragged_inputs_may_share_a_batch_in_any_length() -> None:
    config = """name: "m" max_batch_size: 4
        input { name: "A" data_type: TYPE_FP32 dims: [ -1 ] allow_ragged_batch: true }"""

    assert checker(config).check(request(A=floats(1, 2)))[1] is None


def test_requests_share_a_batch_only_with_the_same_optional_inputs() -> None:
    optional = checker(OPTIONAL)

    none = optional.check(request(A=floats(1, 1)))[1]
    with_b = optional.check(request(A=floats(2, 1), B=floats(2, 1)))[1]
    in_other_order = optional.check(request(B=floats(1, 1), A=floats(1, 1)))[1]
    with_c = optional.check(request(A=floats(1, 1), C=floats(1, 7)))[1]

    assert with_b == in_other_order
    assert len({none, with_b, with_c}) == 3


# What does not pass


def test_a_missing_input_is_named() -> None:
    assert refusal(BATCHED, request(A=floats(1, 2))) == (
        "expected 2 inputs but got 1 inputs for model 'batched'. Got input(s) ['A'], but missing required input(s) "
        "['B']. Please provide all required input(s)."
    )


def test_a_missing_required_input_is_told_from_optional_ones() -> None:
    told = refusal(OPTIONAL, request(B=floats(1, 1)))

    assert "expected number of inputs between 1 and 3 but got 1 inputs" in told
    assert "missing required input(s) ['A']" in told


def test_an_unknown_input_is_named_with_what_there_is() -> None:
    told = refusal(BATCHED, request(A=floats(1, 2), B=ints(1, 1), Z=ints(1, 1)))

    assert told == "unexpected inference input 'Z' for model 'batched'; its inputs are 'A','B'"


def test_an_unknown_input_in_place_of_an_optional_one_is_named() -> None:
    assert "unexpected inference input 'Z'" in refusal(OPTIONAL, request(A=floats(1, 1), Z=floats(1, 1)))


def test_another_datatype_is_refused_with_both() -> None:
    told = refusal(BATCHED, request(A=ints(1, 2), B=ints(1, 1)))

    assert told == "inference input 'A' data-type is 'INT32', but model 'batched' expects 'FP32'"


@pytest.mark.parametrize("shape", [(3, 1), (2,), (2, 1, 1), ()])
def test_another_shape_is_refused_with_both(shape: tuple[int, ...]) -> None:
    told = refusal(PLAIN, request(A=floats(*shape)))

    listed = ",".join(map(str, shape))
    assert told == f"unexpected shape for input 'A' for model 'plain'. Expected [2,-1], got [{listed}]."


def test_the_batch_dimension_is_explained_where_a_shape_lacks_it() -> None:
    told = refusal(BATCHED, request(A=floats(2), B=ints(1, 1)))

    assert "Expected [-1,2], got [2]." in told
    assert "max_batch_size is greater than 0" in told


def test_a_scalar_has_no_batch_dimension() -> None:
    assert refusal(BATCHED, request(A=floats(), B=ints(1, 1))) == (
        "input 'A' has no shape but model requires batch dimension for 'batched'"
    )


def test_inputs_of_unequal_batch_sizes_are_refused() -> None:
    told = refusal(BATCHED, request(A=floats(2, 2), B=ints(3, 1)))

    assert told == "input 'B' batch size does not match other inputs for 'batched': 3 against 2"


def test_a_batch_of_nothing_is_refused() -> None:
    told = refusal(BATCHED, request(A=floats(0, 2), B=ints(0, 1)))

    assert told == "input 'A' has batch size 0; model 'batched' needs at least 1"


def test_a_batch_size_that_is_too_large_is_refused_with_the_limit() -> None:
    told = refusal(BATCHED, request(A=floats(5, 2), B=ints(5, 1)))

    assert told == "inference request batch-size must be <= 4 for 'batched', got 5"


def test_an_unknown_output_is_named_with_what_there_is() -> None:
    told = refusal(PLAIN, request(("X", "Z"), A=floats(2, 1)))

    assert told == "unexpected inference output 'Z' for model 'plain'; its outputs are 'X','Y'"


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
    told = refusal(PLAIN, Request("m", {"A": tensor}))

    assert told.startswith("input 'A' says FP32 [2,")
    assert " and holds " in told


class Foreign:
    """A framework's tensor, which has a shape and dtype of its own kind."""

    def __init__(self, array: np.ndarray) -> None:
        self._array = array
        self.shape = array.shape

    def __dlpack__(self, **options: Any) -> Any:
        return self._array.__dlpack__(**options)

    def __dlpack_device__(self) -> tuple[Any, int]:
        return self._array.__dlpack_device__()


def test_foreign_memory_passes() -> None:
    foreign = Tensor("A", "FP32", (2, 2), Foreign(floats(2, 2)))

    assert checker(PLAIN).check(Request("m", {"A": foreign})) == (1, ((2, 2),))


def test_foreign_memory_needs_a_shape_without_open_dimensions() -> None:
    foreign = Tensor("A", "FP32", (2, -1), Foreign(floats(2, 2)))

    assert refusal(PLAIN, Request("m", {"A": foreign})) == (
        "All input dimensions should be specified for input 'A' for model 'plain', got [2,-1]"
    )


# Reshape


RESHAPED = """
    name: "reshaped"
    max_batch_size: 4
    input [
      { name: "A" data_type: TYPE_FP32 dims: [ 1 ] reshape { shape: [ ] } },
      { name: "B" data_type: TYPE_FP32 dims: [ 2, -1 ] reshape { shape: [ -1, 2, 1 ] } },
      { name: "C" data_type: TYPE_FP32 dims: [ 2 ] }
    ]
"""


def test_the_model_sees_reshaped_inputs_and_the_client_the_dims() -> None:
    reshaped = checker(RESHAPED)
    given = request(A=floats(3, 1), B=floats(3, 2, 5), C=floats(3, 2))

    assert reshaped.check(given)[0] == 3
    seen = reshaped.as_the_model_sees(given)

    assert {name: tensor.shape for name, tensor in seen.inputs.items()} == {"A": (3,), "B": (3, 5, 2, 1), "C": (3, 2)}
    assert all(tensor.array.shape == tensor.shape for tensor in seen.inputs.values())


def test_reshaping_copies_nothing() -> None:
    given = request(A=floats(3, 1), B=floats(3, 2, 5), C=floats(3, 2))

    seen = checker(RESHAPED).as_the_model_sees(given)

    assert seen.inputs["C"] is given.inputs["C"]
    assert np.shares_memory(seen.inputs["B"].array, given.inputs["B"].array)


def test_a_model_without_reshape_sees_the_request_itself() -> None:
    given = request(A=floats(2, 1))

    assert checker(PLAIN).as_the_model_sees(given) is given


def test_reshape_works_without_batching() -> None:
    config = 'name: "m" input { name: "A" data_type: TYPE_FP32 dims: [ 4 ] reshape { shape: [ 2, 2 ] } }'

    seen = checker(config).as_the_model_sees(request(A=floats(4)))

    assert seen.inputs["A"].array.shape == (2, 2)
