"""The same models on a GPU: `make test-gpu` on a machine with one and a build of PyTorch for it."""

import numpy as np
import pytest
import torch

from .written import ADD_SUB

pytestmark = pytest.mark.gpu

ON_GPU = "instance_group [ { kind: KIND_GPU gpus: [ 0 ] } ]"


@pytest.fixture
def gpu_workbench(workbench):
    workbench.gpus = 1
    return workbench


def test_requests_are_computed_on_the_gpu(gpu_workbench, models):
    served = gpu_workbench.script(models.AddSub(), ADD_SUB + ON_GPU)
    given = [{"a": np.full((rows, 4), rows, np.float32), "b": np.ones((rows, 4), np.float32)} for rows in (1, 3)]

    answer = served.execute(*given)

    assert answer["OUTPUT__0"].tolist() == [[2.0] * 4] + [[4.0] * 4] * 3


def test_weights_are_on_the_gpu(gpu_workbench, models):
    config = """max_batch_size: 4
input [{ name: "x" data_type: TYPE_INT64 dims: [ 1 ] }]
output [{ name: "y" data_type: TYPE_FP32 dims: [ 1 ] }]"""
    served = gpu_workbench.script(models.Gather(), config + ON_GPU)

    (usage,) = served.model.memory_usage()

    assert (usage.type, usage.id, usage.byte_size) == ("GPU", 0, 16)


def test_tensors_on_the_gpu_stay_there(gpu_workbench, models):
    from naiad.types import Tensor

    served = gpu_workbench.script(models.AddSub(), ADD_SUB + ON_GPU)
    resident = {name: Tensor(name, "FP32", (1, 4), torch.full((1, 4), 2.0, device="cuda:0")) for name in ("a", "b")}

    answer = served.execute(resident, resident)

    assert answer["OUTPUT__0"].tolist() == [[4.0] * 4] * 2


def test_an_exported_program_moves_to_the_gpu(gpu_workbench, models):
    rows = torch.export.Dim("rows", min=1, max=6)
    given = (torch.ones(2, 4), torch.ones(2, 4))
    gpu_workbench.export(models.AddSub(), given, shapes={"a": {0: rows}, "b": {0: rows}})
    served = gpu_workbench.load(ON_GPU)

    answer = served.execute({"a": np.ones((1, 4), np.float32), "b": np.ones((1, 4), np.float32)})

    assert answer["OUTPUT__1"].tolist() == [[0.0] * 4]
