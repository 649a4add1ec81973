"""Exported programs (`model.pt2`), and files that are no packages."""

import zipfile

import numpy as np
import pytest
import torch

from naiad.errors import ConfigError, InternalError, InvalidArgumentError
from naiad_testing.workbench import tensor_entry

from .written import ADD_SUB, ones


@pytest.fixture
def exported(workbench, models):
    """AddSub over up to 6 rows, exported."""
    rows = torch.export.Dim("rows", min=1, max=6)
    sent = (torch.ones(2, 4), torch.ones(2, 4))
    workbench.export(models.AddSub(), sent, shapes={"a": {0: rows}, "b": {0: rows}})
    return workbench


def test_the_program_limits_the_batch_size(exported):
    assert exported.complete(settings={"default-max-batch-size": "64"}).max_batch_size == 6
    assert exported.complete("max_batch_size: 2").max_batch_size == 2


@pytest.mark.parametrize(
    ("config", "message"),
    [
        ("max_batch_size: 8", "max_batch_size is 8 and model 'm' takes 6 rows at most, in model.pt2"),
        (ADD_SUB.replace("FP32", "FP16", 1), "expects datatype TYPE_FP16 for input 'a', model provides TYPE_FP32"),
        (ADD_SUB.replace("dims: [ 4 ]", "dims: [ 5 ]", 1), r"'a': .* dims \[4\] but .* dims \[5\]"),
        (
            ADD_SUB.replace('"a"', '"INPUT__0"').replace('"b"', '"INPUT__1"').replace("[ 4 ]", "[ 2, 2 ]", 1),
            "'INPUT__0'",
        ),
        (tensor_entry("output", "RESULT[0]", "FP32", "5"), r"'RESULT\[0\]': .* dims \[4\] but"),
        (tensor_entry("input", "x", "FP32", "4") + tensor_entry("input", "a", "FP64", "4"), "TYPE_FP64 for input 'a'"),
    ],
)
def test_a_configuration_that_contradicts_the_program_is_refused(exported, config, message):
    with pytest.raises(ConfigError, match=message):
        exported.load(config.replace("max_batch_size: 8\n", "max_batch_size: 6\n"))


def test_what_is_written_is_kept_and_the_rest_is_filled(exported):
    config = exported.complete(
        'max_batch_size: 2 input [{ name: "INPUT__0" }] output [{ name: "RESULT[1]" data_type: TYPE_FP32 }]'
    )

    assert [(each.name, each.dims) for each in config.input] == [("INPUT__0", (4,)), ("b", (4,))]
    assert [(each.name, each.dims) for each in config.output] == [("RESULT[1]", (4,))]


SEQUENCES = """sequence_batching {
  control_input [ { name: "START__1" control [ { kind: CONTROL_SEQUENCE_START fp32_false_true: [ 0, 1 ] } ] } ]
  state [ { input_name: "state" output_name: "STATE__1" data_type: TYPE_FP32 dims: [ 1 ] } ]
}"""


def test_controls_and_states_of_a_program_are_known_by_names_and_numbers(workbench, models):
    rows = torch.export.Dim("rows", min=1, max=6)
    sent = [torch.ones(2, 1) * value for value in (1, 2, 3)]  # one tensor for all would be one argument
    workbench.export(models.Halves(), tuple(sent), shapes={name: {0: rows} for name in ("x", "start", "state")})
    column = np.array([[4.0]], np.float32)

    served = workbench.load(SEQUENCES)
    answer = served.execute({"x": column, "START__1": column, "state": column * 2})

    assert [each.name for each in (*served.config.input, *served.config.output)] == ["x", "OUTPUT__0"]
    assert (answer["OUTPUT__0"].tolist(), answer["STATE__1"].tolist()) == ([[12.0]], [[6.0]])
    with pytest.raises(ConfigError, match="TYPE_INT32 for input 'START__1', model provides TYPE_FP32"):
        workbench.load(SEQUENCES.replace("fp32_false_true", "int32_false_true"))


def test_a_program_that_cannot_batch_says_so(workbench, models):
    workbench.export(models.Identity(), (torch.ones(2, 3),))

    with pytest.raises(ConfigError, match=r"support batching .* 'x' has shape \[2,3\]"):
        workbench.load("max_batch_size: 4")


def test_an_argument_that_is_no_tensor_is_refused(workbench, models):
    workbench.export(models.OfNumber(), (torch.ones(2, 3), 7))

    with pytest.raises(InvalidArgumentError, match=r"argument ARGS\[1\] of 'model\.pt2' is 7, which is not a tensor"):
        workbench.load()


def test_results_that_are_no_tensors_are_left_out(workbench, models):
    workbench.export(models.WithNothing(), (torch.ones(2, 3),))

    assert [each.name for each in workbench.complete().output] == ["OUTPUT__1"]
    with pytest.raises(ConfigError, match=r"'OUTPUT__0' .* NoneType"):
        workbench.load(tensor_entry("output", "OUTPUT__0", "FP32", "2, 3"))


def test_instances_of_a_program_on_one_device_have_the_same_weights(workbench, models):
    workbench.export(models.Gather(), (torch.ones(2, dtype=torch.int64),))

    served = workbench.load("instance_group [{ count: 2 kind: KIND_CPU }]")

    assert [each.byte_size for each in served.model.memory_usage()] == [4 * 4]


class Counter(torch.nn.Module):
    """Adds what comes to a buffer, which is in a module of its own."""

    def __init__(self):
        super().__init__()
        self.inner = torch.nn.Module()
        self.inner.register_buffer("total", torch.zeros(4))

    def forward(self, x):
        self.inner.total.add_(x)
        return self.inner.total + 0


def test_instances_of_a_program_that_writes_to_a_buffer_do_not_share_it(workbench):
    workbench.export(Counter(), (torch.ones(4),))
    served = workbench.load("instance_group { count: 2 }")
    sent = {"x": np.ones(4, np.float32)}

    first = [served.execute(sent)["OUTPUT__0"].tolist() for _ in range(2)]
    served.instances.reverse()
    second = served.execute(sent)["OUTPUT__0"].tolist()

    assert (first, second) == ([[1] * 4, [2] * 4], [1] * 4)


def test_a_program_of_fixed_shapes_does_not_batch(workbench, models):
    workbench.export(models.Identity(), (torch.ones(2, 3, dtype=torch.int64),))

    served = workbench.load()

    assert (served.config.max_batch_size, served.config.input[0].dims) == (0, (2, 3))
    assert served.execute({"x": np.ones((2, 3), np.int64)})["OUTPUT__0"].tolist() == [[1, 1, 1]] * 2


def test_nested_arguments_and_results_have_paths_for_names(workbench, models):
    sent = ((torch.ones(2), {"k": torch.ones(2)}),)
    workbench.export(models.Nested(), sent, {"mask": torch.ones(2)})
    config = "".join(
        [
            *(tensor_entry("input", name, "FP32", "2") for name in ("KWARGS[mask]", "ARGS[0][0]", "ARGS[0][1][k]")),
            *(tensor_entry("output", name, "FP32", "2") for name in ("RESULT[both][0]", "RESULT[sum]")),
        ]
    )

    answer = workbench.load(f'platform: "torch_aoti" {config}').execute(
        {
            "KWARGS[mask]": np.array([2, 3], np.float32),
            "ARGS[0][0]": np.array([10, 20], np.float32),
            "ARGS[0][1][k]": np.array([1, 2], np.float32),
        }
    )

    assert answer["RESULT[sum]"].tolist() == [11, 22]
    assert answer["RESULT[both][0]"].tolist() == [20, 60]


@pytest.mark.parametrize("inputs", [("a", "b"), ("ARGS[0]", "ARGS[1]"), ("INPUT__0", "INPUT__1")])
def test_a_program_takes_its_arguments_by_any_of_their_names(exported, inputs):
    config = "max_batch_size: 4\n" + "".join(tensor_entry("input", name, "FP32", "4") for name in inputs)
    served = exported.load(f'platform: "torch_aoti" {config}' + tensor_entry("output", "RESULT[1]", "FP32", "4"))

    answer = served.execute({inputs[0]: ones(1, 5), inputs[1]: ones(1)})

    assert answer["RESULT[1]"].tolist() == [[4.0] * 4]


def test_files_that_are_no_packages_are_refused(workbench):
    path = workbench.path("model.pt2")

    path.write_bytes(b"no package")
    with pytest.raises(InvalidArgumentError, match=r"'model\.pt2' is not a package of PyTorch"):
        workbench.load()

    with zipfile.ZipFile(path, "w") as file:
        file.writestr("m/other", "")
    with pytest.raises(InvalidArgumentError, match="holds neither an exported program nor a compiled one"):
        workbench.load()

    with zipfile.ZipFile(path, "w") as file:
        file.writestr("m/models/model.json", "{}")
    with pytest.raises(InternalError, match=r"failed to load model 'm' from 'model\.pt2'"):
        workbench.load()
