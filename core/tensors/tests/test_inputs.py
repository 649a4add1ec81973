"""Inputs that are as their layout says are checked once for each configuration."""

import numpy as np
import pytest

from naiad_config.errors import InvalidArgumentError
from naiad_config.text import parse_text
from naiad_tensors.inputs import DeclaredInputs
from naiad_tensors.laid_out import Field, InputLayout, LaidOutInputs


def _declared(text):
    return DeclaredInputs(parse_text(f'name: "m" backend: "b" {text}'))


def _layout(size=2):
    return InputLayout([Field("x", "FP32", (size, 3), np.dtype(np.float32), 0, 12 * size)])


def _inputs(layout):
    return LaidOutInputs(layout, bytes(24))


def test_a_second_request_of_a_layout_is_not_checked_again():
    declared, layout = _declared('max_batch_size: 4 input { name: "x" data_type: TYPE_FP32 dims: [-1] }'), _layout()
    checked = declared.check(_inputs(layout))

    again = declared.check(_inputs(layout))

    assert checked == (2, ((3,),))
    assert again is checked


def test_another_configuration_checks_for_itself():
    layout = _layout()
    accepting = _declared('max_batch_size: 4 input { name: "x" data_type: TYPE_FP32 dims: [3] }')
    refusing = _declared('max_batch_size: 4 input { name: "x" data_type: TYPE_INT32 dims: [3] }')
    accepting.check(_inputs(layout))

    for _ in range(2):
        with pytest.raises(InvalidArgumentError, match="data-type is 'FP32'"):
            refusing.check(_inputs(layout))

    assert accepting.check(_inputs(layout)) == (2, None)


def test_a_refused_layout_is_refused_again():
    declared, layout = _declared('max_batch_size: 1 input { name: "x" data_type: TYPE_FP32 dims: [3] }'), _layout()
    for _ in range(2):
        with pytest.raises(InvalidArgumentError, match="batch-size must be <= 1"):
            declared.check(_inputs(layout))


def test_inputs_whose_values_decide_on_batching_are_checked_each_time():
    declared = _declared(
        'max_batch_size: 4 input { name: "x" data_type: TYPE_FP32 dims: [3] } '
        'input { name: "s" data_type: TYPE_INT32 dims: [1] is_shape_tensor: true }'
    )
    layout = InputLayout([*_layout().fields, Field("s", "INT32", (1,), np.dtype(np.int32), 24, 4)])
    keys = [declared.check(LaidOutInputs(layout, bytes(24) + bytes([value, 0, 0, 0])))[1] for value in (1, 2)]

    assert keys[0] != keys[1]
