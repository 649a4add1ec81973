"""Configurations completed from engines, and held against them."""

import numpy as np
import pytest

from naiad.errors import ConfigError, InvalidArgumentError
from naiad_config import DataType

from .conftest import ADD_SUB, described, tensor

SHAPED = described(
    tensor("x", -1, -1),
    tensor("size", 3, kind="INT32", is_shape_tensor=True, on_host=True),
    tensor("y", -1, -1, -1, output=True),
    tensor("given", 3, kind="INT32", output=True, is_shape_tensor=True, on_host=True),
    size=((1, 1, 1), (4, 8, 8), (8, 16, 16)),
)
"""An engine whose shape tensor `size` holds the batch size and two sizes."""

PACKED = described(
    tensor("x", -1, 8, 4, 4, format="CHW4", vectorized_dim=1, components=4),
    tensor("y", -1, 8, 4, 4, output=True, format="CHW4", vectorized_dim=1, components=4),
)


def messages(caught):
    """What is wrong, without the name of the file."""
    return [problem.message.removesuffix(", in model.plan") for problem in caught.value.problems]


def test_the_largest_batch_is_that_which_every_input_takes(workbench, machine):
    machine.description = described(tensor("x", -1, 4), tensor("y", -1, output=True), batches=[(1, 2, 32)])

    assert workbench.complete().max_batch_size == 32


def test_a_written_batch_size_is_kept(workbench):
    assert workbench.complete("max_batch_size: 2").max_batch_size == 2


def test_a_larger_batch_than_the_engine_takes_is_refused(workbench):
    with pytest.raises(ConfigError) as caught:
        workbench.complete("max_batch_size: 9")

    assert messages(caught) == [
        (
            "autofill failed for model 'm': configuration specified max-batch 9 but TensorRT engine only supports "
            "max-batch 8"
        )
    ]


def test_a_larger_batch_is_refused_as_well_where_all_is_written(workbench):
    tensors = "{{ name: '{}' data_type: TYPE_FP32 dims: 16 }}"
    inputs, outputs = (", ".join(map(tensors.format, names)) for names in (("A", "B"), ("SUM", "DIFF")))

    with pytest.raises(ConfigError, match="only supports max-batch 8, in model"):
        workbench.load(f"max_batch_size: 9 input [{inputs}] output [{outputs}]")


def test_an_engine_with_fixed_shapes_does_not_batch(workbench, machine):
    machine.description = described(tensor("x", 2, 4), tensor("y", 2, output=True))

    config = workbench.load().config

    assert (config.max_batch_size, config.input[0].dims, config.output[0].dims) == (0, (2, 4), (2,))
    with pytest.raises(ConfigError, match="support batching"):
        workbench.complete("max_batch_size: 2")


def test_dims_that_are_written_whole_say_that_the_model_does_not_batch(workbench):
    config = workbench.complete("input [{ name: 'A' dims: [ -1, 16 ] }]")

    assert (config.max_batch_size, config.input[1].dims, config.dynamic_batching) == (0, (-1, 16), None)


def test_the_shape_tensor_of_a_model_that_batches_leaves_out_the_batch_size(workbench, machine):
    machine.description = SHAPED

    config = workbench.load().config

    assert config.max_batch_size == 8
    assert [(each.name, each.dims, each.is_shape_tensor) for each in (*config.input, *config.output)] == [
        ("x", (-1,), False),
        ("size", (2,), True),
        ("y", (-1, -1), False),
        ("given", (2,), True),
    ]


def test_the_shape_tensor_of_a_model_that_does_not_batch_is_whole(workbench, machine):
    machine.description = SHAPED

    config = workbench.load("input [{ name: 'x' dims: [ -1, -1 ] }]").config

    assert config.max_batch_size == 0
    assert [(each.dims, each.is_shape_tensor) for each in (config.input[1], config.output[1])] == [((3,), True)] * 2


def test_a_shape_tensor_must_be_called_one(workbench, machine):
    machine.description = SHAPED
    written = """
        max_batch_size: 8
        input [{ name: "x" data_type: TYPE_FP32 dims: -1 is_shape_tensor: true },
               { name: "size" data_type: TYPE_INT32 dims: 2 }]
        output [{ name: "y" data_type: TYPE_FP32 dims: [ -1, -1 ] }]
    """

    with pytest.raises(ConfigError) as caught:
        workbench.load(written)

    assert messages(caught) == [
        "model 'm', input 'x' is a shape tensor in the configuration, and an ordinary one in the engine",
        (
            "model 'm', input 'size' is a shape tensor in the engine, whose first value is the batch size, and the"
            " configuration does not say so"
        ),
    ]
    assert [problem.path for problem in caught.value.problems] == [
        "input[0].is_shape_tensor",
        "input[1].is_shape_tensor",
    ]


def test_the_batch_size_is_put_before_the_values_of_a_shape_tensor(workbench, machine):
    machine.description = SHAPED
    machine.compute = lambda inputs: {"y": np.zeros((3, 5, 7), np.float32), "given": inputs["size"]}
    served = workbench.load()
    sizes = np.array([5, 7], np.int32)

    served.execute(
        {"x": np.zeros((1, 2), np.float32), "size": sizes}, {"x": np.zeros((2, 2), np.float32), "size": sizes}
    )

    (inputs, _) = machine.executors[0].runs[0]
    assert inputs["size"].tolist() == [3, 5, 7]


def test_the_values_of_a_shape_tensor_must_fit_a_profile(workbench, machine):
    machine.description = SHAPED
    served = workbench.load()

    with pytest.raises(
        InvalidArgumentError, match=r"input 'size' has the values \[1,5,17\], and profile 0 takes \[1,1,1\]"
    ):
        served.execute({"x": np.zeros((1, 2), np.float32), "size": np.array([5, 17], np.int32)})


RAW = """
    max_batch_size: 8
    input [{ name: "x" data_type: TYPE_FP32 dims: [ 8, 4, 4 ] is_non_linear_format_io: true }]
    output [{ name: "y" data_type: TYPE_FP32 dims: [ 8, 4, 4 ] }]
"""


def test_the_server_lays_out_tensors_unless_clients_do(workbench, machine):
    machine.description = PACKED

    served = workbench.load()
    workbench.load(RAW)

    assert not served.config.input[0].is_non_linear_format_io
    laid_out, raw = (executor.description for executor in machine.executors)
    assert laid_out == PACKED
    assert [tensor.is_linear for tensor in raw.tensors] == [True, False]


def test_a_format_must_be_reported_as_it_is(workbench, machine):
    machine.description = described(tensor("x", -1, 8, 4, 4), tensor("y", -1, 8, 4, 4, output=True))

    with pytest.raises(ConfigError) as caught:
        workbench.load(RAW)

    assert messages(caught) == [
        "model 'm', input 'x' has a linear format in the engine, and the configuration says that it has none",
    ]


@pytest.mark.parametrize(
    ("dims", "reason"),
    [
        ("8, 4", "has a non-linear format, which takes 3 dims, not [8,4]"),
        ("6, 4, 4", "keeps 4 elements of dim 1 together, and 6 of them: clients would have to fill it up"),
    ],
)
def test_a_format_that_clients_cannot_send_is_refused(workbench, machine, dims, reason):
    whole = (-1, *map(int, dims.split(", ")))
    machine.description = described(
        tensor("x", *whole, format="CHW4", vectorized_dim=1, components=4), tensor("y", -1, 8, 4, 4, output=True)
    )

    with pytest.raises(ConfigError) as caught:
        workbench.load(RAW.replace("8, 4, 4 ] is", f"{dims} ] is"))

    assert reason in messages(caught)[0]


@pytest.mark.parametrize("sent", ["", 'batch_input { target_name: "x" data_type: TYPE_FP32 source_input: "z" }'])
def test_a_format_that_the_server_cannot_lay_out_is_refused(workbench, machine, sent):
    machine.description = described(
        tensor("x", -1, format="DLA_HWC4"), tensor("z", -1, 1), tensor("y", -1, output=True)
    )

    with pytest.raises(ConfigError, match=r"model 'm': tensor 'x' .* DLA_HWC4"):
        workbench.load(sent)


def test_elements_that_go_together_come_in_multiples(workbench, machine):
    machine.description = described(
        tensor("x", -1, -1, 4, 4, format="CHW4", vectorized_dim=1, components=4),
        tensor("y", -1, 8, 4, 4, output=True),
        batches=[(1, 4, 16)],
    )
    served = workbench.load(RAW.replace("8, 4, 4 ] is", "-1, 4, 4 ] is"))

    with pytest.raises(InvalidArgumentError, match=r"has shape \[1,6,4,4\]; its format keeps 4 elements"):
        served.execute({"x": np.zeros((1, 6, 4, 4), np.float32)})


def test_a_type_without_datatype_is_refused_with_what_to_do(workbench, machine):
    machine.description = described(tensor("x", -1, 4, kind="FP8"), tensor("y", -1, output=True))

    with pytest.raises(ConfigError) as caught:
        workbench.load("input { name: 'x' data_type: TYPE_UINT8 }")

    (problem,) = caught.value.problems
    assert "input 'x' " in problem.message
    assert "FP8" in problem.message
    assert "build it with a cast to FP16 or FP32 at its border" in problem.hint


def test_bf16_goes_by_its_name(workbench, machine):
    machine.description = described(tensor("x", -1, 4, kind="BF16"), tensor("y", -1, output=True))

    assert workbench.complete().input[0].data_type is DataType.TYPE_BF16


def test_a_profile_that_is_not_there_is_refused(workbench):
    with pytest.raises(ConfigError) as caught:
        workbench.load('instance_group [{ name: "g" profile: [ "0", "1" ] }]')

    (problem,) = caught.value.problems
    assert (
        problem.message == "instance group 'g' of model 'm' has the invalid profile 1: the engine has 1, in model.plan"
    )
    assert problem.path == "instance_group[0].profile[1]"


def test_the_configuration_is_held_against_the_engine(workbench, machine):
    machine.description = ADD_SUB

    with pytest.raises(ConfigError) as caught:
        workbench.load("input { name: 'A' data_type: TYPE_INT32 dims: [ 4, 4 ] }")

    reason = [problem.message for problem in caught.value.problems]
    assert len(reason) == 2
    assert all(message.endswith(", in model.plan") for message in reason)


def test_every_group_must_take_the_largest_batch(workbench, machine):
    machine.description = described(*ADD_SUB.tensors, batches=[(1, 4, 8), (1, 16, 32), (1, 2, 4)])

    config = workbench.complete('instance_group [{ profile: [ "0", "1" ] }, { profile: "2" }, { }]')

    assert config.max_batch_size == 4


def test_batch_inputs_and_ragged_inputs_do_not_bound_the_batch(workbench, machine):
    machine.description = described(
        tensor("x", -1), tensor("counts", -1), tensor("y", -1, 4), tensor("z", -1, output=True), batches=[(1, 8, 64)]
    )

    config = workbench.load(
        """
        max_batch_size: 64
        input [{ name: "x" data_type: TYPE_FP32 dims: -1 allow_ragged_batch: true }]
        batch_input { kind: BATCH_ELEMENT_COUNT target_name: "counts" data_type: TYPE_FP32 source_input: "x" }
        """
    ).config

    assert [each.name for each in config.input] == ["x", "y"]
