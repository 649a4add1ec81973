"""PyTorch models behind a whole server, without a frontend."""

import numpy as np
import torch

import naiad_scheduler_dynamic
import naiad_scheduler_sequence
import naiad_torch
from naiad_testing import serve
from naiad_testing.workbench import tensor_entry

from .test_model import SEQUENCES
from .test_modules import CONFIG, SCALE, TENSORS, given
from .written import ADD_SUB

PLUGINS = [naiad_torch, naiad_scheduler_dynamic, naiad_scheduler_sequence]


def configure(workbench, config):
    (workbench.directory / "config.pbtxt").write_text(config)
    return workbench.directory


def test_a_folder_with_a_model_file_is_served(workbench, models):
    workbench.script(models.AddSub(), ADD_SUB)

    with serve(configure(workbench, ADD_SUB), plugins=PLUGINS) as client:
        answer = client.infer(a=np.full((1, 4), 3, np.float32), b=np.ones((1, 4), np.float32))

    assert answer["OUTPUT__1"].tolist() == [[2.0] * 4]


def test_an_exported_program_is_served_without_a_configuration(workbench, models):
    rows = torch.export.Dim("rows", min=1, max=64)
    workbench.export(models.Identity(), (torch.ones(2, 3),), shapes={"x": {0: rows}})

    with serve(workbench.directory, plugins=PLUGINS) as client:
        answer = client.infer(x=np.ones((2, 3), np.float32))
        config = client.call(lambda server: server.model_config("m"))

    assert answer["OUTPUT__0"].shape == (2, 3)
    assert (config.backend, config.platform, config.max_batch_size) == ("pytorch", "torch_aoti", 4)


def test_a_module_in_python_is_served_with_its_weights(workbench):
    workbench.path("model.py").write_text(SCALE)
    torch.save({"factor": torch.tensor(5.0)}, workbench.path("model.pt"))

    with serve(configure(workbench, CONFIG + TENSORS), plugins=PLUGINS) as client:
        answer = client.infer(**given(3))

    assert answer["y"].tolist() == [[15.0, 15.0]]


def test_statistics_tell_the_memory_of_the_weights(workbench, models):
    config = "max_batch_size: 4\n" + tensor_entry("input", "x", "INT64", "1") + tensor_entry("output", "y", "FP32", "1")
    workbench.script(models.Gather(), config)

    with serve(configure(workbench, config), plugins=PLUGINS) as client:
        (statistics,) = client.call(lambda server: server.statistics("m"))

    assert [(each.type, each.id, each.byte_size) for each in statistics.memory_usage] == [("CPU", 0, 16)]


def test_the_server_keeps_the_states_of_sequences_between_requests(workbench, models):
    workbench.script(models.Accumulator(), SEQUENCES)

    with serve(configure(workbench, SEQUENCES), plugins=PLUGINS) as client:

        def ask(sequence, value, **flags):
            request = client.request(IN__0=np.array([[value]], np.float32))
            request.correlation_id = sequence
            for flag, given in flags.items():
                setattr(request, flag, given)
            return client.send(request).outputs["OUT__0"].array.item()

        sums = [ask(1, 1.0, sequence_start=True), ask(2, 10.0, sequence_start=True), ask(1, 2.0), ask(2, 20.0)]

    assert sums == [1.0, 10.0, 3.0, 30.0]


COUNTING = """
import torch
from torch import nn

class Counting(nn.Module):
    def __init__(self):
        super().__init__()
        self.times = 0

    def forward(self, x):
        self.times += 1
        return x + self.times
"""


def test_a_model_is_warmed_up_before_it_serves(workbench):
    workbench.path("model.py").write_text(COUNTING)
    sample = """model_warmup [{ name: "zeros" batch_size: 1 count: 3
                 inputs { key: "x" value: { data_type: TYPE_FP32 dims: [ 2 ] zero_data: true } } }]"""

    with serve(configure(workbench, CONFIG + TENSORS + sample), plugins=PLUGINS) as client:
        answer = client.infer(**given(0))

    assert answer["y"].tolist() == [[4.0, 4.0]]
