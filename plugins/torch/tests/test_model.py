"""Models as a whole: instances, weights, sequences, ragged batches, and the published checks."""

import numpy as np
import pytest

from naiad.errors import InvalidArgumentError
from naiad_testing.workbench import tensor_entry

from .written import ADD_SUB


@pytest.mark.parametrize(("written", "programs"), [("", 2), ("true", 1)])
def test_instances_share_weights_where_that_is_asked_for(workbench, models, written, programs):
    parameter = f'parameters {{ key: "ENABLE_WEIGHT_SHARING" value {{ string_value: "{written}" }} }}'
    config = "max_batch_size: 4\n" + tensor_entry("input", "x", "INT64", "1") + tensor_entry("output", "y", "FP32", "1")
    served = workbench.script(models.Gather(), f"{config} {parameter} instance_group [{{ count: 2 kind: KIND_CPU }}]")

    (usage,) = served.model.memory_usage()

    assert (usage.type, usage.byte_size) == ("CPU", programs * 4 * 4)
    for instance in served.instances:
        instance.close()
    served.model.close()
    assert list(served.model.memory_usage()) == []


def test_an_instance_that_is_replaced_frees_its_weights(workbench, models):
    config = "max_batch_size: 4\n" + tensor_entry("input", "x", "INT64", "1") + tensor_entry("output", "y", "FP32", "1")
    served = workbench.script(models.Gather(), f"{config} instance_group [{{ count: 2 kind: KIND_CPU }}]")

    served.instances.pop().close()

    assert [usage.byte_size for usage in served.model.memory_usage()] == [4 * 4]


@pytest.mark.parametrize("parameter", ["INFERENCE_MODE:false", "DISABLE_OPTIMIZED_EXECUTION:true"])
def test_a_model_answers_the_same_in_every_mode(workbench, models, parameter):
    key, _, value = parameter.partition(":")
    written = f'parameters {{ key: "{key}" value {{ string_value: "{value}" }} }}'
    served = workbench.script(models.AddSub(), ADD_SUB + written)
    sent = {"a": np.ones((1, 4), np.float32), "b": np.ones((1, 4), np.float32)}

    assert served.execute(sent)["OUTPUT__0"].tolist() == [[2.0] * 4]


def test_a_model_that_chooses_its_device_stays_there(workbench, models):
    served = workbench.script(models.AddSub(), ADD_SUB + "instance_group [{ kind: KIND_MODEL }]")
    sent = {"a": np.ones((1, 4), np.float32), "b": np.ones((1, 4), np.float32)}

    assert served.execute(sent)["OUTPUT__1"].tolist() == [[0.0] * 4]


SEQUENCES = """max_batch_size: 4
input [{ name: "IN__0" data_type: TYPE_FP32 dims: [ 1 ] }]
output [{ name: "OUT__0" data_type: TYPE_FP32 dims: [ 1 ] }]
sequence_batching {
  control_input [{ name: "START__1" control [{ kind: CONTROL_SEQUENCE_START fp32_false_true: [ 0, 1 ] }] }]
  state [{ input_name: "STATE__2" output_name: "STATE_OUT__1" data_type: TYPE_FP32 dims: [ 1 ] }]
}
"""


@pytest.mark.parametrize(("input_name", "output_name"), [("x", "OUT__0"), ("IN", "OUT"), ("IN__0", "OUT")])
def test_controls_and_states_keep_their_numbers_beside_other_names(workbench, models, input_name, output_name):
    swapped = SEQUENCES.replace('"IN__0"', f'"{input_name}"').replace('"OUT__0"', f'"{output_name}"')
    served = workbench.script(models.Accumulator(), swapped)
    column = np.array([[1.0], [2.0]], np.float32)

    answer = served.execute({input_name: column, "STATE__2": column * 10, "START__1": np.array([[1], [0]], np.float32)})

    assert answer[output_name].tolist() == [[1.0], [22.0]]


def test_a_state_that_clients_may_see_keeps_its_number(workbench, models):
    seen = 'output [{ name: "STATE_OUT__1" data_type: TYPE_FP32 dims: [ 1 ] }]\noutput [{ name: "OUT__0"'
    served = workbench.script(models.Halves(), SEQUENCES.replace('output [{ name: "OUT__0"', seen))
    column = np.array([[4.0]], np.float32)

    answer = served.execute({"IN__0": column, "START__1": column * 0, "STATE__2": column})

    assert (answer["OUT__0"].tolist(), answer["STATE_OUT__1"].tolist()) == ([[8.0]], [[4.0]])


def test_controls_are_keys_of_a_dict_too(workbench, models):
    config = SEQUENCES.replace("IN__0", "left").replace("START__1", "right")
    without_state = "".join(line + "\n" for line in config.splitlines() if "state" not in line)
    served = workbench.script(models.FromDict(), without_state)

    answer = served.execute({"left": np.array([[5.0]], np.float32), "right": np.array([[1.0]], np.float32)})

    assert answer["OUT__0"].tolist() == [[4.0]]


def test_controls_without_a_number_are_refused(workbench, models):
    with pytest.raises(InvalidArgumentError, match=r"'START' .*naming convention"):
        workbench.script(models.Accumulator(), SEQUENCES.replace("START__1", "START"))
