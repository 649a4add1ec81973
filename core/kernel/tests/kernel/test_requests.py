"""Requests held against a configuration: what passes, what may share a batch, what the model sees."""

import numpy as np
import pytest

from naiad.types import Request
from naiad_tensors.datatypes import TENSOR_TYPES
from naiad_tensors.tensors import Tensor

from .checking import BATCHED, OPTIONAL, PLAIN, checker, floats, ints, refusal, request


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
    tensor = Request("m", {"A": Tensor("A", wire, shape, array)})

    config = f'name: "m" max_batch_size: 1 input {{ name: "A" data_type: {kind.config.name} dims: [ -1 ] }}'

    assert checker(config).check(tensor)[0] == 1


def test_known_outputs_may_be_requested() -> None:
    assert checker(PLAIN).check(request(("Y", "X"), A=floats(2, 1)))[0] == 1


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
    submitted = request(A=floats(3, 1), B=floats(3, 2, 5), C=floats(3, 2))

    assert reshaped.check(submitted)[0] == 3
    seen = reshaped.to_model_shape(submitted)

    assert {name: tensor.shape for name, tensor in seen.inputs.items()} == {"A": (3,), "B": (3, 5, 2, 1), "C": (3, 2)}
    assert all(tensor.array.shape == tensor.shape for tensor in seen.inputs.values())


def test_reshaping_copies_nothing() -> None:
    submitted = request(A=floats(3, 1), B=floats(3, 2, 5), C=floats(3, 2))

    seen = checker(RESHAPED).to_model_shape(submitted)

    assert seen.inputs["C"] is submitted.inputs["C"]
    assert np.shares_memory(seen.inputs["B"].array, submitted.inputs["B"].array)


def test_a_model_without_reshape_sees_the_request_itself() -> None:
    submitted = request(A=floats(2, 1))

    assert checker(PLAIN).to_model_shape(submitted) is submitted


def test_reshape_works_without_batching() -> None:
    config = 'name: "m" input { name: "A" data_type: TYPE_FP32 dims: [ 4 ] reshape { shape: [ 2, 2 ] } }'

    seen = checker(config).to_model_shape(request(A=floats(4)))

    assert seen.inputs["A"].array.shape == (2, 2)


SHAPE_TENSOR = """name: "m" max_batch_size: 4
    input { name: "A" data_type: TYPE_FP32 dims: [ 1 ] }
    input { name: "S" data_type: TYPE_INT32 dims: [ 2 ] is_shape_tensor: true }"""


def test_requests_share_a_batch_only_with_the_same_values_in_a_shape_tensor() -> None:
    def key(*values: int) -> object:
        batch_size, result = checker(SHAPE_TENSOR).check(request(A=floats(3, 1), S=np.array(values, dtype=np.int32)))
        assert batch_size == 3
        return result

    assert key(5, 6) == key(5, 6)
    assert key(5, 6) != key(6, 5)


def test_a_shape_tensor_has_no_batch_dimension() -> None:
    message = refusal(SHAPE_TENSOR, request(A=floats(1, 1), S=np.zeros((1, 2), dtype=np.int32)))

    assert "input 'S' for model 'm'. Expected [2], got [1,2]" in message
