"""Runs whose tensors stay on the GPU; the tests let ONNX Runtime take host memory for GPU memory."""

import weakref
from collections.abc import Iterator
from typing import Any

import numpy as np
import onnxruntime
import pytest
from onnx import TensorProto

from naiad.backend import Batch
from naiad.types import Request
from naiad_config import ModelConfig
from naiad_kit.backends.interface import Interface, NarrowInputs
from naiad_onnx.device_runs import DeviceRuns, device_runs
from naiad_onnx.instance import OnnxInstance
from naiad_onnx.interface import interface_of
from naiad_tensors.devices import DeviceTensor, gpu
from naiad_tensors.tensors import Tensor
from naiad_testing.devices import FakeDeviceArray, fake_driver

GPU = gpu(0)
BOTH = {"SUM": [GPU], "DIFFERENCE": [GPU]}


@pytest.fixture(autouse=True)
def driver() -> Iterator[None]:
    with fake_driver():
        yield


def interface(session: Any) -> Interface:
    return interface_of(session.get_inputs(), session.get_outputs(), session.get_overridable_initializers())


def instance_of(proto: Any, *outputs: str) -> OnnxInstance:
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    session = onnxruntime.InferenceSession(proto.SerializeToString(), options, providers=["CPUExecutionProvider"])
    described = interface(session)
    names = outputs or [tensor.name for tensor in described.outputs]
    runs = DeviceRuns(session, described, GPU, ("cpu", 0))
    narrow = NarrowInputs(ModelConfig(name="m"), described, "model.onnx")
    return OnnxInstance(session, described, "m", names, onnxruntime.RunOptions(), narrow, runs)


def on_gpu(*rows: float, dtype: str = "float32", is_bf16: bool = False) -> FakeDeviceArray:
    return FakeDeviceArray(np.repeat(np.array(rows, dtype), 2).reshape(-1, 2), is_bf16=is_bf16)


def requested(*inputs: Any, wish: Any = BOTH) -> Batch:
    """A batch of requests with these pairs of A and B."""
    requests = [
        Request("m", {name: Tensor.of(name, value) for name, value in zip("AB", pair, strict=True)}, on_device=wish)
        for pair in inputs
    ]
    return Batch(requests, [request.inputs["A"].shape[0] for request in requests])


def held(value: Any) -> list[Any]:
    """What lies on the GPU there."""
    assert isinstance(value, DeviceTensor)
    return FakeDeviceArray.over(value).memory.tolist()


def test_tensors_are_read_and_left_on_the_gpu(models: Any) -> None:
    a, b = on_gpu(3), on_gpu(2)

    answer = instance_of(models.add_sub(("n", 2))).execute(requested((a, b)))

    assert (held(answer["SUM"]), held(answer["DIFFERENCE"])) == ([[5, 5]], [[1, 1]])
    assert (a.copies, b.copies) == (0, 0)


def test_outputs_that_are_not_taken_there_are_arrays(models: Any) -> None:
    answer = instance_of(models.add_sub(("n", 2))).execute(requested((on_gpu(3), on_gpu(2)), wish={"SUM": [GPU]}))

    assert held(answer["SUM"]) == [[5, 5]]
    assert answer["DIFFERENCE"].tolist() == [[1, 1]]


def test_inputs_on_both_sides_meet(models: Any) -> None:
    a = on_gpu(3)

    answer = instance_of(models.add_sub(("n", 2))).execute(requested((a, np.full((1, 2), 2, np.float32)), wish=None))

    assert answer["SUM"].tolist() == [[5, 5]]
    assert a.copies == 0


@pytest.mark.parametrize(
    ("kind", "dtype"), [(TensorProto.FLOAT, "float32"), (TensorProto.INT64, "int64"), (TensorProto.INT8, "int8")]
)
def test_requests_are_joined_on_the_gpu(models: Any, kind: int, dtype: str) -> None:
    pairs = [(on_gpu(1, 2, dtype=dtype), on_gpu(1, 1, dtype=dtype)), (on_gpu(5, dtype=dtype), on_gpu(2, dtype=dtype))]

    answer = instance_of(models.add_sub(("n", 2), kind)).execute(requested(*pairs))

    assert held(answer["SUM"]) == [[2, 2], [3, 3], [7, 7]]
    assert [array.copies for pair in pairs for array in pair] == [0] * 4


def test_booleans_are_joined_on_the_gpu(models: Any) -> None:
    sent = [Request("m", {"IN": Tensor.of("IN", on_gpu(value, dtype="bool"))}) for value in (True, False)]

    answer = instance_of(models.identity(["n", 2], TensorProto.BOOL)).execute(Batch(sent, [1, 1]))

    assert answer["OUT"].tolist() == [[True, True], [False, False]]


def test_bf16_is_read_and_left_on_the_gpu(models: Any) -> None:
    one = [on_gpu(0x3F80, dtype="uint16", is_bf16=True) for _ in range(4)]

    answer = instance_of(models.identity(["n", 2], TensorProto.BFLOAT16)).execute(
        Batch([Request("m", {"IN": Tensor.of("IN", each)}, on_device={"OUT": [GPU]}) for each in one], [1] * 4)
    )

    assert answer["OUT"].datatype == "BF16"
    assert held(answer["OUT"]) == [[0x3F80] * 2] * 4


def test_an_output_that_stays_keeps_its_memory(models: Any) -> None:
    instance = instance_of(models.add_sub(("n", 2)))
    first = instance.execute(requested((on_gpu(3), on_gpu(2))))

    for _ in range(5):
        instance.execute(requested((on_gpu(9), on_gpu(9))))
    instance.close()

    assert held(first["SUM"]) == [[5, 5]]


def test_an_input_that_the_model_also_gives_as_an_output_keeps_its_memory(models: Any) -> None:
    array = on_gpu(3)
    freed = weakref.ref(array)
    sent = Request("m", {"IN": Tensor.of("IN", array)}, on_device={"IN": [GPU]})

    answer = instance_of(models.given_back(["n", 2])).execute(Batch([sent], [1]))
    del array, sent

    assert freed() is not None
    assert held(answer["IN"]) == [[3, 3]]


def test_an_input_on_the_host_that_the_model_also_gives_as_an_output_is_copied(models: Any) -> None:
    array = np.full((1, 2), 3, np.float32)
    sent = Request("m", {"IN": Tensor.of("IN", array)}, on_device={"OUT": [GPU]})

    answer = instance_of(models.given_back(["n", 2])).execute(Batch([sent], [1]))
    array[:] = 0  # as memory that something else was put into

    assert answer["IN"].tolist() == [[3, 3]]


def test_a_tensor_with_gaps_is_read_by_its_strides(models: Any) -> None:
    gaps = FakeDeviceArray(np.float32([[1, 2, 3, 4]])[:, ::2])
    sent = Request("m", {"IN": Tensor.of("IN", gaps)})

    answer = instance_of(models.identity(["n", 2])).execute(Batch([sent], [1]))

    assert answer["OUT"].tolist() == [[1, 3]]


def test_a_request_that_fails_alone_does_not_take_others_with_it(models: Any) -> None:
    instance = instance_of(models.gather())
    sent = [
        Request("m", {"INDEX": Tensor.of("INDEX", FakeDeviceArray(np.array([[index]])))}, on_device={"OUT": [GPU]})
        for index in (1, 9)
    ]

    good, bad = instance.execute(Batch(sent, [1, 1]))

    assert held(good.outputs["OUT"]) == [[11.0]]
    assert "indices element out of data bounds" in str(bad)


class Session:
    """As much of a session as says where it runs."""

    def __init__(self, provider: str, **options: str) -> None:
        self._provider, self._options = provider, options

    def get_providers(self) -> list[str]:
        return [self._provider, "CPUExecutionProvider"]

    def get_provider_options(self) -> dict[str, dict[str, str]]:
        return {self._provider: self._options}


@pytest.mark.parametrize(
    ("session", "devices"),
    [
        (Session("CUDAExecutionProvider", device_id="1"), (gpu(1),)),
        (Session("TensorrtExecutionProvider", device_id="0"), (gpu(0),)),
        (Session("CUDAExecutionProvider", device_id="0", enable_cuda_graph="1"), None),
        (Session("TensorrtExecutionProvider", device_id="0", trt_cuda_graph_enable="True"), None),
        (Session("OpenVINOExecutionProvider"), None),
        (Session("CPUExecutionProvider"), None),
    ],
)
def test_tensors_stay_on_the_gpu_of_the_session(session: Any, devices: Any) -> None:
    runs = device_runs(session, Interface((), ()))

    assert (None if runs is None else runs.input_devices) == devices


def test_models_with_strings_have_all_tensors_on_the_host(models: Any) -> None:
    proto = models.identity(["n", 1], TensorProto.STRING).SerializeToString()
    session = onnxruntime.InferenceSession(proto, providers=["CPUExecutionProvider"])

    assert device_runs(Session("CUDAExecutionProvider", device_id="0"), interface(session)) is None
