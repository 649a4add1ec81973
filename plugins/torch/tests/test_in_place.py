"""Models that write to their inputs, or to results that they keep, change nothing that others read."""

import warnings

import numpy as np
import pytest
import torch

from naiad_testing.workbench import tensor_entry
from naiad_torch.exported import _writes

CONFIG = tensor_entry("input", "x", "FP32", "4") + tensor_entry("output", "y__0", "FP32", "4")


class WritesInput(torch.nn.Module):
    def forward(self, x):
        x.add_(1)
        return x * 2


class WritesInputSometimes(torch.nn.Module):
    def forward(self, x):
        y = x * 2
        if bool(x.sum() > -100):
            x.relu_()
            x.add_(1)
        return y + 2


def add_one(x: torch.Tensor) -> torch.Tensor:
    return x.add_(1)


class WritesInputInFork(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.jit.wait(torch.jit.fork(add_one, x)) * 2


class AddOne(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x.add_(1)


with warnings.catch_warnings(category=DeprecationWarning, action="ignore"):  # for those who make TorchScript

    @torch.jit.interface
    class AnyModule(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            pass


class WritesInputThroughInterface(torch.nn.Module):
    inner: AnyModule

    def __init__(self):
        super().__init__()
        self.inner = AddOne()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.inner.forward(x) * 2


class WritesInputInOwnOperator(torch.nn.Module):
    def forward(self, x):
        torch.ops.naiad_tests.add_one(x)
        return x * 2


class KeepsResult(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("total", torch.zeros(4))

    def forward(self, x):
        self.total += x
        return self.total.view(4)


class Plain(torch.nn.Module):
    def forward(self, x):
        return x * 2 + 2


MODULE = """
import torch

class Writes(torch.nn.Module):
    def forward(self, x):
        return x.add_(1).mul_(2)
"""

ACCUMULATOR = """
import torch

class Accumulates(torch.nn.Module):
    def forward(self, x, total):
        total.add_(x)
        return x.add_(1), total
"""

STATE = """
    sequence_batching { state {
        input_name: "total" output_name: "total__1" data_type: TYPE_FP32 dims: [ 4 ]
        use_same_buffer_for_input_output: true
    } }
"""


def received():
    return np.frombuffer(np.full(4, 3, np.float32).tobytes(), np.float32)


@pytest.mark.parametrize("kind", [WritesInput, WritesInputSometimes, WritesInputInFork, WritesInputThroughInterface])
def test_a_script_that_writes_to_its_input_leaves_the_received_bytes_alone(workbench, kind):
    x = received()

    answer = workbench.script(kind(), CONFIG).execute({"x": x})

    assert x.tolist() == [3] * 4
    assert answer["y__0"].tolist() == [8] * 4


def test_a_module_in_python_that_writes_to_its_input_leaves_the_received_bytes_alone(workbench):
    workbench.path("model.py").write_text(MODULE)
    x = received()

    answer = workbench.load(f'backend: "pytorch" runtime: "model.py" {CONFIG}').execute({"x": x})

    assert x.tolist() == [3] * 4
    assert answer["y__0"].tolist() == [8] * 4


def test_an_exported_program_that_writes_to_its_input_leaves_the_received_bytes_alone(workbench):
    torch.export.save(torch.export.export(WritesInput(), (torch.ones(4),)), workbench.path("model.pt2"))
    x = received()

    answer = workbench.load().execute({"x": x})

    assert x.tolist() == [3] * 4
    assert answer["OUTPUT__0"].tolist() == [8] * 4


def test_an_exported_program_whose_own_operator_writes_to_its_input_leaves_the_received_bytes_alone(workbench):
    @torch.library.custom_op("naiad_tests::add_one", mutates_args=("x",))
    def add_one_to(x: torch.Tensor) -> None:
        x += 1

    add_one_to.register_fake(lambda x: None)
    program = torch.export.export(WritesInputInOwnOperator(), (torch.ones(4),))
    torch.export.save(program, workbench.path("model.pt2"))
    x = received()

    answer = workbench.load().execute({"x": x})

    assert x.tolist() == [3] * 4
    assert answer["OUTPUT__0"].tolist() == [8] * 4


@pytest.mark.parametrize("kind", [WritesInput, WritesInputSometimes])
def test_a_script_that_writes_to_its_input_leaves_an_array_that_may_be_written_to_alone(workbench, kind):
    x = np.full(4, 3, np.float32)

    answer = workbench.script(kind(), CONFIG).execute({"x": x})

    assert x.tolist() == [3] * 4
    assert answer["y__0"].tolist() == [8] * 4


def test_a_module_in_python_may_write_to_the_one_buffer_of_a_state(workbench):
    workbench.path("model.py").write_text(ACCUMULATOR)
    total, x = np.full(4, 3, np.float32), np.ones(4, np.float32)
    served = workbench.load(f'backend: "pytorch" runtime: "model.py" {CONFIG} {STATE}')

    answer = served.execute({"x": x, "total": total})

    assert (total.tolist(), x.tolist()) == ([4] * 4, [1] * 4)
    assert answer["total__1"].tolist() == [4] * 4


def test_a_script_that_keeps_its_result_does_not_change_its_last_answer(workbench):
    served = workbench.script(KeepsResult(), CONFIG)

    first = served.execute({"x": received()})["y__0"]
    second = served.execute({"x": received()})["y__0"]

    assert (first.tolist(), second.tolist()) == ([3] * 4, [6] * 4)


def test_a_script_that_writes_to_nothing_computes_over_the_received_bytes(workbench):
    served = workbench.script(Plain(), CONFIG)

    assert not served.instance._program.in_place


@pytest.mark.parametrize(
    ("operator", "writes"),
    [
        (torch.ops.aten.add_.Tensor, True),
        (torch.ops.aten.add.out, True),
        (torch.ops.aten.copy_.default, True),
        (torch.ops.aten.__iand__.Tensor, True),
        (torch.ops.aten._native_batch_norm_legit.default, True),
        (torch.ops.aten.add.Tensor, False),
        (torch.ops.aten.__and__.Tensor, False),
        (len, False),
    ],
)
def test_operators_that_write_are_known_by_their_schemas(operator, writes):
    assert _writes(operator) is writes
