"""Controls and states of sequences are parameters and results of a function, and neither inputs nor outputs."""

import pytest

from naiad.errors import ConfigError

CODE = """
    from typing import NamedTuple

    import numpy as np
    from naiad_custom import BOOL, INT32, Array, model

    class Sums(NamedTuple):
        total: Array[INT32, 1]
        sum_out: Array[INT32, -1]

    @model(max_batch_size=8)
    def add(x: Array[INT32, 1], sum_in: Array[INT32, -1], start: Array[BOOL, 1]) -> Sums:
        total = np.where(start, x, x + sum_in)
        return Sums(total, total)
"""
CONFIG = """
sequence_batching {
  control_input [ { name: "start" control [ { kind: CONTROL_SEQUENCE_START bool_false_true: [ false, true ] } ] } ]
  state [ { input_name: "sum_in" output_name: "sum_out" data_type: TYPE_INT32 dims: [ -1 ] } ]
}
"""


def test_clients_bring_and_get_what_is_neither_control_nor_state(folder):
    folder.write(CODE, CONFIG)

    config = folder.completed()

    assert [each.name for each in config.input] == ["x"]
    assert [each.name for each in config.output] == ["total"]
    assert config.dynamic_batching is None


def test_a_state_that_is_also_an_output_stays_one(folder):
    folder.write(CODE, CONFIG + 'output { name: "sum_out" }')

    config = folder.completed()

    assert [(each.name, each.dims) for each in config.output] == [("sum_out", (-1,)), ("total", (1,))]


@pytest.mark.parametrize(
    ("old", "new", "path", "message"),
    [
        (
            '"sum_in"',
            '"sum_before"',
            "sequence_batching.state[0].input_name",
            "state 'sum_before' is not a valid state name: 'add' has no parameter 'sum_before'",
        ),
        (
            '"sum_out"',
            '"sum_after"',
            "sequence_batching.state[0].output_name",
            "state 'sum_after' is not a valid state name: 'add' has no output 'sum_after'",
        ),
        (
            "TYPE_INT32 dims: [ -1 ]",
            "TYPE_FP32 dims: [ -1 ]",
            "sequence_batching.state[0].data_type",
            "'sum_in' is TYPE_FP32 here and TYPE_INT32 in the code",
        ),
        (
            "TYPE_INT32 dims: [ -1 ]",
            "TYPE_INT32 dims: [ -1, 2 ]",
            "sequence_batching.state[0].dims",
            "'sum_in' has dims [-1, 2] here and [-1] in the code",
        ),
        (
            '"start"',
            '"begin"',
            "sequence_batching.control_input[0].name",
            "'add' has no parameter 'begin'",
        ),
        (
            "bool_false_true: [ false, true ]",
            "int32_false_true: [ 0, 1 ]",
            "sequence_batching.control_input[0].name",
            "'start' is TYPE_INT32 here and TYPE_BOOL in the code",
        ),
    ],
)
def test_what_the_code_does_not_have_is_reported_where_it_is_written(folder, old, new, path, message):
    assert old in CONFIG
    folder.write(CODE, CONFIG.replace(old, new))

    with pytest.raises(ConfigError) as caught:
        folder.completed()

    assert (path, message) in {(each.path, each.message) for each in caught.value.problems}


def test_a_function_that_gets_the_batch_needs_no_parameter_for_a_control(folder):
    code = CODE.replace("start: Array[BOOL, 1]", "batch: Batch").replace("np.where(start, x, x + sum_in)", "x + sum_in")
    folder.write(code.replace("import numpy as np", "from naiad.backend import Batch"), CONFIG)

    assert [each.name for each in folder.completed().input] == ["x"]
