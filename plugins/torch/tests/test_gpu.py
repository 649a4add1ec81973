"""The same models on a GPU: `make test-gpu` on a machine with one and a build of PyTorch for it."""

import time

import numpy as np
import pytest
import torch

from naiad.backend import Batch
from naiad.types import Request
from naiad_tensors.datatypes import fp32_to_bf16
from naiad_tensors.devices import DeviceTensor, gpu
from naiad_tensors.tensors import Tensor

from .written import ADD_SUB

pytestmark = pytest.mark.gpu

SLOW = """import torch


class Slow(torch.nn.Module):
    def forward(self, x):
        wide = x.expand(4096, 4096)
        for _ in range(40):
            wide = wide @ wide * 0.0
        return wide[:1, :1]
"""
ON_GPU = "instance_group [ { kind: KIND_GPU gpus: [ 0 ] } ]"


@pytest.fixture
def gpu_workbench(workbench):
    workbench.gpus = 1
    return workbench


def test_requests_are_computed_on_the_gpu(gpu_workbench, models):
    served = gpu_workbench.script(models.AddSub(), ADD_SUB + ON_GPU)
    sent = [{"a": np.full((rows, 4), rows, np.float32), "b": np.ones((rows, 4), np.float32)} for rows in (1, 3)]

    answer = served.execute(*sent)

    assert answer["OUTPUT__0"].tolist() == [[2.0] * 4] + [[4.0] * 4] * 3


def test_weights_are_on_the_gpu(gpu_workbench, models):
    config = """max_batch_size: 4
input [{ name: "x" data_type: TYPE_INT64 dims: [ 1 ] }]
output [{ name: "y" data_type: TYPE_FP32 dims: [ 1 ] }]"""
    served = gpu_workbench.script(models.Gather(), config + ON_GPU)

    (usage,) = served.model.memory_usage()

    assert (usage.type, usage.id, usage.byte_size) == ("GPU", 0, 16)


def test_tensors_on_the_gpu_are_read_there(gpu_workbench, models):
    served = gpu_workbench.script(models.AddSub(), ADD_SUB + ON_GPU)
    resident = {name: Tensor(name, "FP32", (1, 4), torch.full((1, 4), 2.0, device="cuda:0")) for name in ("a", "b")}

    answer = served.execute(resident, resident)

    assert answer["OUTPUT__0"].tolist() == [[4.0] * 4] * 2


def batch(*wishes, rows=1):
    """A batch of requests for AddSub, each with what it takes on which device."""
    sent = np.full((rows, 4), 3, np.float32)
    inputs = {name: Tensor.of(name, sent) for name in ("a", "b")}
    return Batch([Request("m", inputs, on_device=wish) for wish in wishes], [rows] * len(wishes))


def test_an_output_stays_where_a_request_takes_it_there(gpu_workbench, models):
    served = gpu_workbench.script(models.AddSub(), ADD_SUB + ON_GPU)

    answer = served.instance.execute(batch({"OUTPUT__0": [gpu(0)]}, None))

    assert isinstance(answer["OUTPUT__1"], np.ndarray)
    assert not isinstance(answer["OUTPUT__0"], np.ndarray)
    kept = DeviceTensor.of(answer["OUTPUT__0"])
    assert (kept.device, kept.datatype, kept.shape) == (gpu(0), "FP32", (2, 4))
    assert torch.from_dlpack(kept[1:2]).tolist() == [[6.0] * 4]
    assert kept.array.tolist() == [[6.0] * 4] * 2


def test_what_stays_goes_through_the_next_model_in_the_same_memory(gpu_workbench, models):
    served = gpu_workbench.script(models.AddSub(), ADD_SUB + ON_GPU)
    first = served.instance.execute(batch({"OUTPUT__0": [gpu(0)], "OUTPUT__1": [gpu(0)]}, rows=2))
    inputs = {
        "a": Tensor.of("a", first["OUTPUT__0"]),
        "b": Tensor.of("b", first["OUTPUT__1"]),
    }
    read = served.instance._device.bring(Batch([Request("m", inputs)], [2]), "a", False)

    second = served.execute(inputs)

    assert read.data_ptr() == DeviceTensor.of(first["OUTPUT__0"]).address
    assert second["OUTPUT__1"].tolist() == [[6.0] * 4] * 2


def test_bf16_stays_and_comes_to_the_host_as_bits(gpu_workbench, models):
    config = """max_batch_size: 4
input [{ name: "x" data_type: TYPE_BF16 dims: [ 2 ] }]
output [{ name: "y" data_type: TYPE_BF16 dims: [ 2 ] }]"""
    served = gpu_workbench.script(models.Identity(), config + ON_GPU)
    bits = Tensor.of("x", fp32_to_bf16(np.ones((1, 2), np.float32)), "BF16")

    answer = served.instance.execute(Batch([Request("m", {"x": bits}, on_device={"y": [gpu(0)]})], [1]))

    kept = DeviceTensor.of(answer["y"])
    assert (kept.datatype, kept.array.tolist()) == ("BF16", [[0x3F80] * 2])


def test_the_stream_of_an_instance_is_its_own(gpu_workbench, models):
    served = gpu_workbench.script(
        models.AddSub(), ADD_SUB + "instance_group [ { kind: KIND_GPU gpus: [ 0 ] count: 2 } ]"
    )
    streams = []

    for instance in served.instances:
        with instance._device.active():
            streams.append(torch.cuda.current_stream().cuda_stream)

    assert len({*streams, torch.cuda.default_stream().cuda_stream}) == 3


def test_the_time_of_the_gpu_counts_as_inference(gpu_workbench):
    gpu_workbench.path("model.py").write_text(SLOW)
    config = """backend: "pytorch" runtime: "model.py"
input [{ name: "x" data_type: TYPE_FP32 dims: [ 1, 1 ] }]
output [{ name: "y" data_type: TYPE_FP32 dims: [ 1, 1 ] }]
"""
    served = gpu_workbench.load(config + ON_GPU)
    first, of = (Batch([Request("m", {"x": Tensor.of("x", np.ones((1, 1), np.float32))})], [1]) for _ in range(2))
    served.instance.execute(first)

    served.instance.execute(of)
    ended_ns = time.monotonic_ns()

    assert of.infer_done_ns - of.input_done_ns > ended_ns - of.infer_done_ns


def test_what_is_staged_is_pinned(gpu_workbench, models):
    served = gpu_workbench.script(models.AddSub(), ADD_SUB + ON_GPU)
    device = served.instance._device

    with device.active():
        staged = device._staging.begin_to_host(torch.ones(4, device="cuda:0"))

    assert staged.is_pinned()


def test_the_memory_of_an_output_is_free_when_the_last_reference_is_gone(gpu_workbench, models):
    served = gpu_workbench.script(models.AddSub(), ADD_SUB + ON_GPU)
    of = batch({"OUTPUT__0": [gpu(0)], "OUTPUT__1": [gpu(0)]}, rows=8)
    served.instance.execute(of)
    before = torch.cuda.memory_allocated(0)

    answer = served.instance.execute(of)
    parts = [DeviceTensor.of(value)[2:4] for value in answer.values()]
    while_kept = torch.cuda.memory_allocated(0)
    del answer, parts

    assert while_kept > before
    assert torch.cuda.memory_allocated(0) == before


def test_a_compiled_module_gives_away_copies_of_what_it_overwrites(gpu_workbench, models):
    gpu_workbench.path("model.py").write_text(
        "import torch\n\n\nclass Double(torch.nn.Module):\n    def forward(self, x):\n        return x * 2\n"
    )
    options = '{\\"mode\\": \\"reduce-overhead\\"}'
    config = f"""backend: "pytorch" runtime: "model.py" max_batch_size: 4
input [{{ name: "x" data_type: TYPE_FP32 dims: [ 2 ] }}]
output [{{ name: "y" data_type: TYPE_FP32 dims: [ 2 ] }}]
parameters {{ key: "TORCH_COMPILE_OPTIONAL_PARAMETERS" value {{ string_value: "{options}" }} }}
"""
    served = gpu_workbench.load(config + ON_GPU)
    kept = []

    for value in range(4):
        sent = Tensor.of("x", np.full((1, 2), value, np.float32))
        of = Batch([Request("m", {"x": sent}, on_device={"y": [gpu(0)]})], [1])
        kept.append(DeviceTensor.of(served.instance.execute(of)["y"]))

    assert [tensor.array.tolist() for tensor in kept] == [[[2.0 * value] * 2] for value in range(4)]


def test_an_exported_program_moves_to_the_gpu(gpu_workbench, models):
    rows = torch.export.Dim("rows", min=1, max=6)
    sent = (torch.ones(2, 4), torch.ones(2, 4))
    gpu_workbench.export(models.AddSub(), sent, shapes={"a": {0: rows}, "b": {0: rows}})
    served = gpu_workbench.load(ON_GPU)

    answer = served.execute({"a": np.ones((1, 4), np.float32), "b": np.ones((1, 4), np.float32)})

    assert answer["OUTPUT__1"].tolist() == [[0.0] * 4]
