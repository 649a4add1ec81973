"""A TritonPythonModel and tensors on a GPU, which is host memory that says it is one."""

import numpy as np
import pytest

import triton_python_backend_utils as pb_utils
from naiad.backend import Batch
from naiad.errors import InvalidArgumentError
from naiad.types import Request
from naiad_tensors.devices import DeviceTensor, gpu
from naiad_tensors.tensors import Tensor
from naiad_testing import serve
from naiad_testing.devices import FakeDeviceArray, fake_driver

MAKES = """
from naiad_testing.devices import FakeDeviceArray
made = FakeDeviceArray(np.array([value_of(requests[0].inputs()) * 2]))
return [pb_utils.InferenceResponse([pb_utils.Tensor.from_dlpack("Y", made)])]
"""
ASKS = """
from naiad_testing.devices import FakeDeviceArray
memory = {memory}
response = asked("on_gpu", 4, preferred_memory=memory).exec()
found = pb_utils.get_output_tensor_by_name(response, "Y")
assert found.is_cpu() is {is_cpu}, found.is_cpu()
assert tuple(found.shape()) == (1,)
return [answer(int(found.as_numpy()[0]) + 1)]
"""
GPU_MEMORY = "pb_utils.PreferredMemory(pb_utils.TRITONSERVER_MEMORY_GPU, 0)"


@pytest.mark.parametrize(("memory", "is_cpu"), [("None", True), (GPU_MEMORY, False)])
def test_the_answer_of_a_call_is_where_the_caller_prefers_it(models, memory, is_cpu):
    models.triton("on_gpu", MAKES)
    models.triton("outer", ASKS.format(memory=memory, is_cpu=is_cpu))

    with serve(models.path) as client:
        assert client["outer"].infer(X=[1])["Y"].tolist() == [9]


def test_what_a_model_answers_from_a_gpu_reaches_a_client(models):
    models.triton("on_gpu", MAKES)

    with serve(models.path) as client:
        assert client["on_gpu"].infer(X=[5])["Y"].tolist() == [10]


def test_a_bare_capsule_can_be_passed_on_more_than_once():
    held = FakeDeviceArray(np.array([1.0, 2.0], np.float32))

    tensor = pb_utils.Tensor.from_dlpack("T", held.__dlpack__())

    assert (tensor.is_cpu(), tensor.shape()) == (False, [2])
    assert [FakeDeviceArray.over(tensor).memory.tolist() for _ in range(2)] == [[1, 2]] * 2
    with fake_driver():
        assert tensor.as_numpy().tolist() == [1, 2]


CONFIG = 'parameters {{ key: "FORCE_CPU_ONLY_INPUT_TENSORS" value {{ string_value: "{}" }} }}'


@pytest.mark.parametrize(("value", "devices"), [("yes", ()), ("no", tuple(map(gpu, range(64))))])
def test_a_model_says_whether_it_takes_tensors_on_a_gpu(folder, value, devices):
    folder.write_triton("return []")
    config = folder.path / "config.pbtxt"
    config.write_text(config.read_text() + CONFIG.format(value))

    assert folder.instance().input_devices == devices


def test_a_value_that_says_neither_is_refused(folder):
    folder.write_triton("return []")
    config = folder.path / "config.pbtxt"
    config.write_text(config.read_text() + CONFIG.format("maybe"))

    with pytest.raises(InvalidArgumentError, match="Incorrect value for FORCE_CPU_ONLY_INPUT_TENSORS: 'maybe'"):
        folder.model()


def test_a_model_reads_what_lies_on_a_gpu_there_or_on_the_host(folder):
    folder.write_triton(
        "x = requests[0].inputs()[0]; return [pb_utils.InferenceResponse([pb_utils.Tensor('Y', x.as_numpy())])]"
    )
    held = FakeDeviceArray(np.array([7]))
    request = Request("m", {"X": Tensor("X", "INT64", (1,), DeviceTensor.of(held))})

    (reply,) = folder.instance().execute(Batch([request], [1]))

    assert reply.outputs["Y"].tolist() == [7]
    assert held.copies == 1
