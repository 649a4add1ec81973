"""Requests that fit a configuration with open dims, held against the model's own."""

import numpy as np
import pytest

from naiad.errors import InvalidArgumentError
from naiad_config.text import parse_text
from naiad_kit.backends.interface import Interface, NarrowInputs
from naiad_testing.workbench import batch_of

from .tensors import tensor_of

MODEL = Interface((tensor_of("A", "tensor(float)", (-1, 16)), tensor_of("B", "tensor(float)", (-1, -1))), ())


def narrow(written, interface=MODEL):
    return NarrowInputs(parse_text(f'name: "m" {written}'), interface, "model.x")


def rows(width, height=1):
    return np.zeros((height, width), np.float32)


def test_a_request_that_does_not_fit_the_model_is_refused_with_both_shapes():
    inputs = narrow('max_batch_size: 4 input { name: "A" dims: [ -1 ] } input { name: "B" dims: [ -1 ] }')

    inputs.check(batch_of({"A": rows(16), "B": rows(3)}, {"A": rows(16, 2), "B": rows(5, 2)}))
    with pytest.raises(InvalidArgumentError) as raised:
        inputs.check(batch_of({"A": rows(16), "B": rows(3)}, {"A": rows(17), "B": rows(3)}))

    assert str(raised.value) == "input 'A' of model 'm' has shape [1,17], and model.x takes [-1,16]"


@pytest.mark.parametrize(
    "written",
    [
        'max_batch_size: 4 input { name: "A" dims: [ 16 ] }',
        'input { name: "A" dims: [ -1, 16 ] }',
        'max_batch_size: 4 input { name: "A" dims: [ -1 ] allow_ragged_batch: true }',
        'input { name: "C" dims: [ -1 ] }',
        'max_batch_size: 4 input { name: "A" dims: [ -1 ] reshape { shape: [ 16 ] } }',
    ],
)
def test_other_inputs_are_not_looked_at(written):
    narrow(written).check(batch_of({"A": rows(17)}))


def test_a_model_that_does_not_batch_is_held_against_its_whole_shape():
    inputs = narrow('input { name: "A" dims: [ -1, -1 ] }')

    with pytest.raises(InvalidArgumentError, match=r"has shape \[1,17\], and model.x takes \[-1,16\]"):
        inputs.check(batch_of({"A": rows(17)}, batching=False))
