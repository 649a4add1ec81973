"""Defaults that are filled in, and where instances live."""

from dataclasses import replace

import pytest

from naiad.backend import BackendTraits, Placement
from naiad.errors import ConfigError, Problem
from naiad_config import (
    InstanceKind,
    ModelConfig,
    ModelDynamicBatching,
    ModelInstanceGroup,
    ModelOptimizationPolicy,
    ModelSequenceBatching,
    PinnedMemoryBuffer,
    StrategyOldest,
)
from naiad_config.json import to_json
from naiad_config.normalisation import instance_placements, normalise
from naiad_config.text import parse_text

ONNX = BackendTraits("onnxruntime", ("onnxruntime_onnx",), {"model.onnx": "onnxruntime_onnx"}, cpu_instances=2)
PLAIN = BackendTraits("plain")


def test_an_onnx_adder_without_a_configuration_becomes_complete():
    completed = parse_text(
        """
        name: "adder" platform: "onnxruntime_onnx" backend: "onnxruntime" max_batch_size: 4
        default_model_filename: "model.onnx"
        input [ { name: "A" data_type: TYPE_FP32 dims: 16 }, { name: "B" data_type: TYPE_FP32 dims: 16 } ]
        output [ { name: "SUM" data_type: TYPE_FP32 dims: 16 } ]
        dynamic_batching { }
        """
    )

    shown = to_json(normalise(completed, traits=ONNX))

    assert shown["version_policy"] == {"latest": {"num_versions": 1}}
    assert shown["dynamic_batching"]["preferred_batch_size"] == [4]
    assert shown["optimization"]["input_pinned_memory"] == {"enable": True}
    assert shown["optimization"]["output_pinned_memory"] == {"enable": True}
    assert shown["runtime"] == ""
    assert "model_transaction_policy" not in shown
    (group,) = shown["instance_group"]
    assert (group["name"], group["kind"], group["count"], group["gpus"]) == ("adder", "KIND_CPU", 2, [])


def test_normalising_twice_changes_nothing():
    config = parse_text(
        """
        name: "m" max_batch_size: 8 instance_group [ { count: 2 }, { kind: KIND_GPU } ]
        sequence_batching { oldest { max_candidate_sequences: 4 } }
        """
    )

    once = normalise(config, traits=ONNX, gpus=2)

    assert normalise(once, traits=ONNX, gpus=2) == once


def test_groups_without_a_name_are_numbered_and_the_others_keep_theirs():
    config = ModelConfig(name="m", instance_group=(ModelInstanceGroup(), ModelInstanceGroup(name="x")))

    groups = normalise(config, traits=PLAIN).instance_group

    assert [group.name for group in groups] == ["m_0", "x"]


def test_sequences_get_an_idle_time_and_a_preferred_size():
    batching = ModelSequenceBatching(oldest=StrategyOldest(max_candidate_sequences=3))

    normalised = normalise(ModelConfig(name="m", max_batch_size=8, sequence_batching=batching), traits=PLAIN)

    assert normalised.sequence_batching == ModelSequenceBatching(
        oldest=StrategyOldest(max_candidate_sequences=3, preferred_batch_size=(8,)),
        max_sequence_idle_microseconds=1_000_000,
    )


def test_what_the_configuration_decides_is_kept():
    off = PinnedMemoryBuffer(enable=False)
    config = ModelConfig(
        name="m",
        max_batch_size=8,
        dynamic_batching=ModelDynamicBatching(preferred_batch_size=(2, 4)),
        optimization=ModelOptimizationPolicy(input_pinned_memory=off),
        instance_group=(ModelInstanceGroup(kind=InstanceKind.KIND_CPU, count=3),),
    )

    normalised = normalise(config, traits=ONNX)

    assert normalised.dynamic_batching == config.dynamic_batching
    assert normalised.optimization.input_pinned_memory == off
    assert normalised.instance_group[0].count == 3


def test_a_model_without_batching_gets_no_preferred_size():
    normalised = normalise(ModelConfig(name="m", dynamic_batching=ModelDynamicBatching()), traits=PLAIN)

    assert normalised.dynamic_batching == ModelDynamicBatching()


def test_an_ensemble_gets_neither_instances_nor_optimization():
    config = parse_text('name: "e" platform: "ensemble" ensemble_scheduling { step { model_name: "a" } }')

    normalised = normalise(config, traits=None)

    assert (normalised.instance_group, normalised.optimization) == ((), None)
    assert instance_placements(normalised) == ()


@pytest.mark.parametrize(
    ("group", "gpus", "kind", "listed"),
    [
        (ModelInstanceGroup(), 0, InstanceKind.KIND_CPU, ()),
        (ModelInstanceGroup(), 2, InstanceKind.KIND_GPU, (0, 1)),
        (ModelInstanceGroup(gpus=(1,)), 2, InstanceKind.KIND_GPU, (1,)),
        (ModelInstanceGroup(gpus=(0, 5)), 2, InstanceKind.KIND_CPU, ()),
        (ModelInstanceGroup(kind=InstanceKind.KIND_GPU), 2, InstanceKind.KIND_GPU, (0, 1)),
        (ModelInstanceGroup(kind=InstanceKind.KIND_MODEL), 2, InstanceKind.KIND_MODEL, ()),
    ],
)
def test_the_kind_of_a_group_is_settled(group, gpus, kind, listed):
    config = ModelConfig(name="m", instance_group=(group,))

    (normalised,) = normalise(config, traits=ONNX, gpus=gpus).instance_group

    assert (normalised.kind, normalised.gpus) == (kind, listed)
    assert normalised.count == (2 if kind is InstanceKind.KIND_CPU else 1)


def test_instances_are_named_after_their_group():
    config = normalise(ModelConfig(name="m"), traits=ONNX)
    (group,) = config.instance_group

    placements = instance_placements(config)

    assert placements == (Placement("m_0", "CPU", 0, group), Placement("m_1", "CPU", 0, group))


def test_each_gpu_gets_the_count_of_its_group():
    group = ModelInstanceGroup(name="g", kind=InstanceKind.KIND_GPU, count=2, gpus=(0, 2))
    config = normalise(ModelConfig(name="m", instance_group=(group,)), traits=ONNX, gpus=3)

    placements = instance_placements(config, gpus=3)

    assert [(each.name, each.device) for each in placements] == [("g_0", 0), ("g_0", 2), ("g_1", 0), ("g_1", 2)]
    assert {each.kind for each in placements} == {"GPU"}


def test_a_model_that_chooses_its_devices_has_one_set_of_instances():
    group = ModelInstanceGroup(name="g", kind=InstanceKind.KIND_MODEL, count=1)

    (placement,) = instance_placements(ModelConfig(name="m", instance_group=(group,)), gpus=2)

    assert (placement.name, placement.kind) == ("g_0", "MODEL")


def test_a_gpu_group_without_a_gpu_is_refused_with_what_to_do():
    group = ModelInstanceGroup(name="g", kind=InstanceKind.KIND_GPU, gpus=(0,))

    with pytest.raises(ConfigError) as caught:
        instance_placements(ModelConfig(name="m", instance_group=(group,)))

    assert caught.value.problems == (
        Problem(
            "instance group 'g' has kind KIND_GPU but no GPUs are available",
            "instance_group[0].kind",
            hint="use KIND_CPU, or KIND_AUTO to take a GPU only where there is one",
        ),
    )


def test_gpus_that_are_not_here_are_all_named():
    group = ModelInstanceGroup(name="g", kind=InstanceKind.KIND_GPU, gpus=(0, 42))
    other = replace(group, name="h", gpus=(-1,))

    with pytest.raises(ConfigError) as caught:
        instance_placements(ModelConfig(name="m", instance_group=(group, other)), gpus=2)

    assert [(problem.path, problem.message) for problem in caught.value.problems] == [
        ("instance_group[0].gpus[1]", "instance group 'g' specifies invalid or unsupported gpu id 42"),
        ("instance_group[1].gpus[0]", "instance group 'h' specifies invalid or unsupported gpu id -1"),
    ]


def test_a_backend_that_uses_no_gpu_gets_none_for_an_automatic_kind():
    groups = (ModelInstanceGroup(gpus=(0,)), ModelInstanceGroup(kind=InstanceKind.KIND_GPU))
    traits = BackendTraits("plain", uses_gpus=False)

    automatic, explicit = normalise(ModelConfig(name="m", instance_group=groups), traits=traits, gpus=1).instance_group

    assert (automatic.kind, automatic.gpus) == (InstanceKind.KIND_CPU, ())
    assert explicit.kind is InstanceKind.KIND_GPU
