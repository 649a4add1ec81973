"""The execution accelerator `openvino` for real: run by tests/test_openvino_build.py where the build that has it is."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import onnxruntime
import pytest
from onnx import TensorProto, helper, numpy_helper

from naiad.errors import InvalidArgumentError, UnsupportedError
from naiad_tensors.datatypes import bf16_to_fp32, fp32_to_bf16
from naiad_tensors.tensors import Tensor

PROVIDER = "OpenVINOExecutionProvider"

pytestmark = pytest.mark.skipif(
    PROVIDER not in onnxruntime.get_available_providers(),
    reason="this build of ONNX Runtime has no OpenVINO; tests/test_openvino_build.py runs it where one has",
)


def requested(**parameters):
    supplied = "".join(f"parameters {{ key: '{key}' value: '{text}' }}" for key, text in parameters.items())
    accelerator = f"cpu_execution_accelerator [ {{ name: 'openvino' {supplied} }} ]"
    return f"optimization {{ execution_accelerators {{ {accelerator} }} }}"


@pytest.fixture
def network(models):
    """OUT [n, 64] = relu(IN [n, 64] · a matrix) · another."""
    generator = np.random.default_rng(7)
    nodes = [
        helper.make_node("MatMul", ["IN", "FIRST"], ["hidden"]),
        helper.make_node("Relu", ["hidden"], ["active"]),
        helper.make_node("MatMul", ["active", "SECOND"], ["OUT"]),
    ]
    weights = tuple(
        numpy_helper.from_array(generator.standard_normal((64, 64), dtype=np.float32), name)
        for name in ("FIRST", "SECOND")
    )
    return models.model_of(nodes, [models.value("IN", ["n", 64])], [models.value("OUT", ["n", 64])], weights)


@pytest.fixture
def sent():
    return np.random.default_rng(8).standard_normal((8, 64), dtype=np.float32)


@pytest.mark.parametrize(
    "parameters",
    [
        {},
        {"num_streams": "2", "num_of_threads": "1"},
        {"precision": "FP32", "model_priority": "HIGH", "disable_dynamic_shapes": "1"},
        {"device_type": "HETERO:CPU"},
        {"device_type": "AUTO:CPU"},
        {"load_config": '{"CPU": {"INFERENCE_NUM_THREADS": "1"}}'},
    ],
)
def test_a_network_gives_what_it_gives_on_the_cpu(workbench, network, sent, opened, parameters):
    plain = workbench.load(network).execute({"IN": sent})["OUT"]
    served = workbench.load(network, requested(**parameters))

    answers = [served.execute({"IN": sent[:size]})["OUT"] for size in (8, 1, 3)]
    batched = served.execute({"IN": sent[:3]}, {"IN": sent[3:]})["OUT"]

    assert [session.get_providers()[0] for session in opened] == ["CPUExecutionProvider", PROVIDER]
    for answer in (*answers, batched):
        np.testing.assert_allclose(answer, plain[: len(answer)], rtol=1e-4, atol=1e-4)


def test_two_instances_share_a_session_and_run_at_once(workbench, network, sent, request_batch):
    served = workbench.load(network, requested())
    plain = served.execute({"IN": sent})["OUT"]

    with ThreadPoolExecutor(2) as threads:
        runs = [
            threads.submit(served.instances[index % 2].execute, request_batch({"IN": sent[index % 8 :]}))
            for index in range(40)
        ]

    for index, run in enumerate(runs):
        np.testing.assert_allclose(run.result()["OUT"], plain[index % 8 :], rtol=1e-4, atol=1e-4)


def test_strings_and_bf16_run_beside_openvino(workbench, models):
    text = workbench.load(models.identity(["n", 1], TensorProto.STRING), requested())
    words = text.execute({"IN": np.array([[b"so"], [b"what"]], dtype=object)})["OUT"]
    half = workbench.load(models.identity(["n", 2], TensorProto.BFLOAT16), requested())

    halves = half.execute({"IN": Tensor.of("IN", fp32_to_bf16(np.full((1, 2), 2.5)), "BF16")})["OUT"]

    assert words.tolist() == [[b"so"], [b"what"]]
    assert bf16_to_fp32(halves).tolist() == [[2.5, 2.5]]


def test_an_input_with_a_default_is_refused_which_openvino_takes_for_a_constant(workbench, models):
    inputs = 'input [ { name: "IN" }, { name: "SCALE" optional: true } ]'

    served = workbench.load(models.with_default(), 'input { name: "IN" }' + requested())
    with pytest.raises(UnsupportedError, match="input 'SCALE' of model 'm' has a default in the model, which OpenVINO"):
        workbench.load(models.with_default(), inputs + requested())

    assert served.execute({"IN": np.array([1, 2, 3], np.float32)})["OUT"].tolist() == [2.0, 4.0, 6.0]


def test_a_device_that_is_not_there_fails_the_load_and_nothing_falls_back(workbench, network):
    with pytest.raises(UnsupportedError) as caught:
        workbench.load(network, requested(device_type="NPU"))

    assert str(caught.value) == (
        "ONNX Runtime could not start OpenVINOExecutionProvider for model 'm' (its log above says why); check the "
        "parameters of the execution accelerator, and that its device is there"
    )


def test_a_property_that_openvino_does_not_know_fails_the_load(workbench, network):
    with pytest.raises(InvalidArgumentError) as caught:
        workbench.load(network, requested(load_config='{"CPU": {"NONSENSE": "1"}}'))

    message = str(caught.value)
    assert "of model 'm': onnx runtime error 1: Exception while Loading Network for graph" in message
    assert "NotFound: Unsupported property NONSENSE by CPU plugin.; check the parameters" in message
    assert ".cc" not in message


def test_an_instance_on_a_gpu_is_refused_with_what_has_gpus(workbench, network):
    workbench.folder.gpus = 1

    with pytest.raises(UnsupportedError, match=r"asks for a GPU, .*has OpenVINOExecutionProvider.*naiad-onnx\[gpu\]"):
        workbench.load(network, requested() + "instance_group [ { kind: KIND_GPU gpus: [ 0 ] } ]")
