"""Models as a whole: instances, weights, sequences, ragged batches, and the published checks."""

import numpy as np
import pytest
import torch

from naiad.errors import InvalidArgumentError, UnsupportedError
from naiad_testing.backends import BackendCase, check_backend, check_imports_no_framework
from naiad_testing.workbench import tensor_entry
from naiad_torch.backend import TorchBackend

from .written import ADD_SUB


def test_the_backend_keeps_its_contract(workbench, models):
    workbench.script(models.AddSub(), ADD_SUB)
    (workbench.directory / "config.pbtxt").write_text(f'platform: "pytorch_libtorch"\n{ADD_SUB}')
    chance = np.random.default_rng(0)
    requests = [
        {name: chance.standard_normal((rows, 4)).astype(np.float32) for name in ("a", "b")} for rows in (1, 3, 2)
    ]
    expected = [{"OUTPUT__0": each["a"] + each["b"], "OUTPUT__1": each["a"] - each["b"]} for each in requests]

    check_backend(TorchBackend(), BackendCase(workbench.directory, requests, expected))


def test_the_plugin_imports_no_framework():
    check_imports_no_framework("naiad_torch", "torch")


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


@pytest.mark.parametrize(
    "parameter", ["INFERENCE_MODE:false", "DISABLE_OPTIMIZED_EXECUTION:true", "DISABLE_CUDNN:true"]
)
def test_a_model_answers_the_same_in_every_mode(workbench, models, parameter):
    key, _, value = parameter.partition(":")
    written = f'parameters {{ key: "{key}" value {{ string_value: "{value}" }} }}'
    served = workbench.script(models.AddSub(), ADD_SUB + written)
    given = {"a": np.ones((1, 4), np.float32), "b": np.ones((1, 4), np.float32)}

    assert served.execute(given)["OUTPUT__0"].tolist() == [[2.0] * 4]


def test_a_model_that_places_itself_is_left_where_it_is(workbench, models):
    served = workbench.script(models.AddSub(), ADD_SUB + "instance_group [{ kind: KIND_MODEL }]")
    given = {"a": np.ones((1, 4), np.float32), "b": np.ones((1, 4), np.float32)}

    assert served.execute(given)["OUTPUT__1"].tolist() == [[0.0] * 4]


@pytest.mark.skipif(torch.cuda.is_available(), reason="this machine has a GPU")
def test_a_gpu_that_is_not_there_is_told_at_load(workbench, models):
    workbench.gpus = 1

    with pytest.raises(UnsupportedError, match=r"wants GPU 0, and this PyTorch .* has 0"):
        workbench.script(models.AddSub(), ADD_SUB + "instance_group [{ kind: KIND_GPU }]")


SEQUENCES = """max_batch_size: 4
input [{ name: "IN__0" data_type: TYPE_FP32 dims: [ 1 ] }]
output [{ name: "OUT__0" data_type: TYPE_FP32 dims: [ 1 ] }]
sequence_batching {
  control_input [{ name: "START__1" control [{ kind: CONTROL_SEQUENCE_START fp32_false_true: [ 0, 1 ] }] }]
  state [{ input_name: "STATE__2" output_name: "STATE_OUT__1" data_type: TYPE_FP32 dims: [ 1 ] }]
}
"""


def test_controls_and_states_are_arguments_and_results_by_number(workbench, models):
    served = workbench.script(models.Accumulator(), SEQUENCES)
    column = np.array([[1.0], [2.0]], np.float32)

    answer = served.execute({"IN__0": column, "START__1": np.array([[1], [0]], np.float32), "STATE__2": column * 10})

    assert answer["OUT__0"].tolist() == [[1.0], [22.0]]
    assert answer["STATE_OUT__1"].tolist() == [[1.0], [22.0]]


@pytest.mark.parametrize(("given", "made"), [("x", "OUT__0"), ("IN", "OUT"), ("IN__0", "OUT")])
def test_controls_and_states_keep_their_numbers_beside_names_of_another_kind(workbench, models, given, made):
    swapped = SEQUENCES.replace('"IN__0"', f'"{given}"').replace('"OUT__0"', f'"{made}"')
    served = workbench.script(models.Accumulator(), swapped)
    column = np.array([[1.0], [2.0]], np.float32)

    answer = served.execute({given: column, "STATE__2": column * 10, "START__1": np.array([[1], [0]], np.float32)})

    assert answer[made].tolist() == [[1.0], [22.0]]


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
    with pytest.raises(InvalidArgumentError, match=r"'START' .*does not follow <name>__<index> naming convention"):
        workbench.script(models.Accumulator(), SEQUENCES.replace("START__1", "START"))


class Ragged(torch.nn.Module):
    """The sum of each request's part of x, whose ends are in `ends`."""

    def forward(self, x: torch.Tensor, ends: torch.Tensor) -> torch.Tensor:
        sums = torch.cumsum(x, 0)[(ends - 1).to(torch.int64)]
        return torch.diff(sums, prepend=torch.zeros(1)).unsqueeze(1)


def test_requests_of_different_lengths_share_a_batch(workbench):
    config = """max_batch_size: 8
input [{ name: "x" data_type: TYPE_FP32 dims: [ -1 ] allow_ragged_batch: true }]
output [{ name: "y" data_type: TYPE_FP32 dims: [ 1 ] }]
batch_input [{ kind: BATCH_ACCUMULATED_ELEMENT_COUNT target_name: "ends" data_type: TYPE_INT32 source_input: "x" }]
"""
    served = workbench.script(Ragged(), config)

    answer = served.execute({"x": np.ones((1, 3), np.float32)}, {"x": np.full((1, 2), 5, np.float32)})

    assert answer["y"].tolist() == [[3.0], [10.0]]
