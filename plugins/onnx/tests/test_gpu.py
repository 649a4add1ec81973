"""The same models on a GPU: `make test-gpu` on a machine with one and `naiad-onnx[gpu]`."""

import numpy as np
import pytest
from onnx import TensorProto, helper, numpy_helper

from naiad.backend import Batch, MemoryUsage
from naiad.types import Request
from naiad_tensors.datatypes import bf16_to_fp32, fp32_to_bf16
from naiad_tensors.devices import DeviceTensor, gpu
from naiad_tensors.tensors import Tensor

pytestmark = pytest.mark.gpu

ON_GPU = "instance_group [ { kind: KIND_GPU gpus: [ 0 ] } ]"
EXACT = """
optimization { execution_accelerators { gpu_execution_accelerator [
  { name: "cuda" parameters { key: "use_tf32" value: "0" } }
] } }
"""


@pytest.fixture
def gpu_workbench(workbench):
    workbench.folder.gpus = 1
    return workbench


def test_a_network_on_the_gpu_equals_numpy(gpu_workbench, models):
    generator = np.random.default_rng(7)
    first, second = (generator.standard_normal((64, 64), dtype=np.float32) for _ in range(2))
    nodes = [
        helper.make_node("MatMul", ["IN", "FIRST"], ["hidden"]),
        helper.make_node("Relu", ["hidden"], ["active"]),
        helper.make_node("MatMul", ["active", "SECOND"], ["OUT"]),
    ]
    weights = (numpy_helper.from_array(first, "FIRST"), numpy_helper.from_array(second, "SECOND"))
    network = models.model_of(nodes, [models.value("IN", ["n", 64])], [models.value("OUT", ["n", 64])], weights)
    sent = generator.standard_normal((8, 64), dtype=np.float32)
    served = gpu_workbench.load(network, ON_GPU + EXACT)

    answer = served.execute({"IN": sent[:3]}, {"IN": sent[3:]})

    np.testing.assert_allclose(answer["OUT"], np.maximum(sent @ first, 0) @ second, rtol=1e-3, atol=1e-3)


def test_the_session_is_on_the_gpu(gpu_workbench, models, opened):
    gpu_workbench.load(models.add_sub(), ON_GPU)

    assert opened[0].get_providers()[0] == "CUDAExecutionProvider"
    assert opened[0].get_provider_options()["CUDAExecutionProvider"]["device_id"] == "0"


def test_instances_on_a_gpu_have_sessions_of_their_own(gpu_workbench, models, opened):
    gpu_workbench.load(models.add_sub(), "instance_group [ { kind: KIND_GPU gpus: [ 0 ] count: 2 } ]")

    assert len(opened) == 2


def test_kind_auto_takes_the_gpu(gpu_workbench, models, opened):
    gpu_workbench.load(models.add_sub())

    assert opened[0].get_providers()[0] == "CUDAExecutionProvider"


def test_options_of_the_cuda_accelerator_reach_the_provider(gpu_workbench, models, opened):
    gpu_workbench.load(models.add_sub(), ON_GPU + EXACT)

    assert opened[0].get_provider_options()["CUDAExecutionProvider"]["use_tf32"] == "0"


def test_bf16_runs_on_the_gpu(gpu_workbench, models):
    served = gpu_workbench.load(models.add_sub(("n", 2), TensorProto.BFLOAT16), ON_GPU)
    three, two = (
        Tensor.of(name, fp32_to_bf16(np.full((1, 2), number)), "BF16") for name, number in (("A", 3), ("B", 2))
    )

    answer = served.execute({"A": three, "B": two})

    assert bf16_to_fp32(answer["SUM"]).tolist() == [[5.0, 5.0]]


def test_strings_pass_through_a_gpu_instance(gpu_workbench, models):
    served = gpu_workbench.load(models.identity(["n", 1], TensorProto.STRING), ON_GPU)

    answer = served.execute({"IN": np.array([["text"]], dtype=object)})

    assert answer["OUT"].tolist() == [[b"text"]]


def on_gpu(served, *pairs, wish):
    """The answer to a batch of requests with these A and B, which take these outputs on the GPU."""
    requests = [
        Request(
            "m", {name: Tensor.of(name, supplied) for name, supplied in zip("AB", pair, strict=True)}, on_device=wish
        )
        for pair in pairs
    ]
    return served.instance.execute(Batch(requests, [request.inputs["A"].shape[0] for request in requests]))


@pytest.mark.parametrize("kind", [TensorProto.FLOAT, TensorProto.INT32])
def test_outputs_stay_on_the_gpu_and_the_next_run_reads_them_there(gpu_workbench, models, kind):
    served = gpu_workbench.load(models.add_sub(("n", 2), kind), ON_GPU)
    dtype = np.float32 if kind == TensorProto.FLOAT else np.int32
    both = {"SUM": [gpu(0)], "DIFFERENCE": [gpu(0)]}
    pairs = [(np.full((rows, 2), 3, dtype), np.full((rows, 2), 2, dtype)) for rows in (1, 2)]

    first = on_gpu(served, *pairs, wish=both)
    parts = [(first["SUM"][rows], first["DIFFERENCE"][rows]) for rows in (slice(0, 1), slice(1, 3))]
    second = on_gpu(served, *parts, wish=None)

    assert {type(value) for value in first.values()} == {DeviceTensor}
    assert second["SUM"].tolist() == [[6, 6]] * 3
    assert second["DIFFERENCE"].tolist() == [[4, 4]] * 3
    assert first["SUM"].array.tolist() == [[5, 5]] * 3


def test_inputs_on_both_sides_meet_on_the_gpu(gpu_workbench, models):
    served = gpu_workbench.load(models.add_sub(("n", 2)), ON_GPU)
    two = np.full((1, 2), 2, np.float32)
    first = on_gpu(served, (two, two), wish={"SUM": [gpu(0)]})

    second = on_gpu(served, (first["SUM"], two), wish={"SUM": [gpu(0)]})

    assert second["SUM"].array.tolist() == [[6.0, 6.0]]
    assert second["DIFFERENCE"].tolist() == [[2.0, 2.0]]


def test_an_output_that_stays_outlives_the_instance(gpu_workbench, models):
    served = gpu_workbench.load(models.add_sub(("n", 2)), ON_GPU)
    two = np.full((1, 2), 2, np.float32)

    kept = on_gpu(served, (two, two), wish={"SUM": [gpu(0)]})["SUM"]
    on_gpu(served, (two * 9, two), wish={"SUM": [gpu(0)]})
    served.instance.close()
    served.model.close()

    assert kept.array.tolist() == [[4.0, 4.0]]


def test_bf16_stays_on_the_gpu(gpu_workbench, models):
    served = gpu_workbench.load(models.add_sub(("n", 2), TensorProto.BFLOAT16), ON_GPU)
    three, two = (
        Tensor.of(name, fp32_to_bf16(np.full((1, 2), number)), "BF16") for name, number in (("A", 3), ("B", 2))
    )
    of = Batch([Request("m", {"A": three, "B": two}, on_device={"SUM": [gpu(0)]})], [1])

    kept = served.instance.execute(of)["SUM"]

    assert kept.datatype == "BF16"
    assert bf16_to_fp32(kept.array).tolist() == [[5.0, 5.0]]


def test_the_memory_of_the_weights_is_reported_on_the_gpu(gpu_workbench, models):
    served = gpu_workbench.load(models.dense(64, 32), ON_GPU)

    size = gpu_workbench.folder.path("model.onnx").stat().st_size
    assert served.model.memory_usage() == [MemoryUsage("GPU", 0, size)]


def test_arenas_of_both_devices_shrink_after_a_run_and_those_of_others_are_left_alone(gpu_workbench, models):
    arenas = 'parameters { key: "memory.enable_memory_arena_shrinkage" value { string_value: "cpu:0;gpu:0;gpu:7" } }'
    served = gpu_workbench.load(models.identity(["n", 1]), ON_GPU + arenas)

    assert served.execute({"IN": np.ones((1, 1), np.float32)})["OUT"].tolist() == [[1.0]]
