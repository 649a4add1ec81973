"""Models as a class in Python (`runtime: "model.py"`)."""

import gc
import json
import sys

import numpy as np
import pytest
import torch

from naiad.errors import InternalError, InvalidArgumentError, ModelFailedError, NotFoundError
from naiad_testing.workbench import tensor_entry

SCALE = """
import torch
from torch import nn

class Helper:
    pass

class Scale(nn.Module):
    def __init__(self):
        super().__init__()
        self.factor = nn.Parameter(torch.tensor(2.0))

    def forward(self, x):
        assert not self.training and torch.is_inference_mode_enabled()
        return x * self.factor
"""
CONFIG = 'backend: "pytorch" runtime: "model.py" max_batch_size: 4\n'
TENSORS = tensor_entry("input", "x", "FP32", "2") + tensor_entry("output", "y", "FP32", "2")


def sent(value):
    return {"x": np.full((1, 2), value, np.float32)}


def test_the_first_module_of_the_file_is_served(workbench):
    workbench.path("model.py").write_text(SCALE)

    answer = workbench.load(CONFIG + TENSORS).execute(sent(3), sent(4))

    assert answer["y"].tolist() == [[6.0, 6.0], [8.0, 8.0]]


def test_a_forward_may_take_its_inputs_by_position_alone(workbench):
    workbench.path("model.py").write_text(SCALE.replace("forward(self, x)", "forward(self, x, /)"))

    assert workbench.load(CONFIG + TENSORS).execute(sent(3))["y"].tolist() == [[6.0, 6.0]]


def test_weights_lie_beside_the_file(workbench):
    workbench.path("model.py").write_text(SCALE)
    torch.save({"factor": torch.tensor(5.0)}, workbench.path("model.pt"))

    assert workbench.load(CONFIG + TENSORS).execute(sent(3))["y"].tolist() == [[15.0, 15.0]]


def test_weights_that_would_run_code_are_refused(workbench):
    workbench.path("model.py").write_text(SCALE)
    torch.save({"factor": print}, workbench.path("model.pt"))

    with pytest.raises(InternalError, match=r"failed to load model 'm': 'model\.pt' must hold the weights of Scale"):
        workbench.load(CONFIG + TENSORS)


def test_weights_of_another_shape_are_refused_with_both(workbench):
    workbench.path("model.py").write_text(SCALE)
    torch.save({"factor": torch.ones(3)}, workbench.path("model.pt"))

    with pytest.raises(InternalError, match=r"'model\.pt' .*factor: .*torch\.Size\(\[3\]\) .*torch\.Size\(\[\]\)"):
        workbench.load(CONFIG + TENSORS)


def test_a_module_that_chooses_its_device_gets_its_inputs_there(workbench):
    written = SCALE.replace("torch.tensor(2.0)", 'torch.tensor(2.0, device="meta")')
    workbench.path("model.py").write_text(
        written.replace("return x * self.factor", "assert x.is_meta\n        return 1 / 0")
    )
    served = workbench.load(CONFIG + TENSORS + "instance_group [{ kind: KIND_MODEL }]")

    with pytest.raises(ModelFailedError, match=r"PyTorch execute failure: .*division by zero \(model.py:\d+\)$"):
        served.execute(sent(1))


def compiling(arguments):
    written = json.dumps(json.dumps(arguments))
    return f'parameters {{ key: "TORCH_COMPILE_OPTIONAL_PARAMETERS" value {{ string_value: {written} }} }}'


def test_a_module_is_compiled_where_that_is_asked_for(workbench):
    workbench.path("model.py").write_text(
        SCALE.replace("assert not self.training", "assert torch.compiler.is_compiling()")
    )

    answer = workbench.load(CONFIG + TENSORS + compiling({"backend": "eager"})).execute(sent(3))

    assert answer["y"].tolist() == [[6.0, 6.0]]
    with pytest.raises(ModelFailedError):
        workbench.load(CONFIG + TENSORS).execute(sent(3))


def test_arguments_that_compiling_does_not_know_are_refused(workbench):
    workbench.path("model.py").write_text(SCALE)

    with pytest.raises(
        InvalidArgumentError, match=r"torch\.compile refuses the TORCH_COMPILE_OPTIONAL_PARAMETERS of mod"
    ):
        workbench.load(CONFIG + TENSORS + compiling({"speed": 11}))


def test_torchscript_stands_in_for_a_file_that_is_not_there(workbench, models):
    workbench.script(models.Identity(), "max_batch_size: 4 " + TENSORS)

    assert workbench.load(CONFIG + TENSORS).execute(sent(3))["y"].tolist() == [[3.0, 3.0]]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("import torch\nx = 1\n", "Cannot find a subclass of torch.nn.Module"),
        ("from torch import nn\n\nclass M(nn.Module)\n", r"failed to load model 'm': model.py:3: SyntaxError"),
        ("import torch\n\nraise ValueError('oh')\n", "failed to load model 'm': model.py:3: ValueError: oh"),
    ],
)
def test_a_file_without_a_model_is_refused_with_its_line(workbench, text, message):
    workbench.path("model.py").write_text(text)

    with pytest.raises(InvalidArgumentError, match=message):
        workbench.load(CONFIG + TENSORS)


def test_a_module_that_cannot_be_made_tells_its_line(workbench):
    workbench.path("model.py").write_text(SCALE.replace("super().__init__()", "1 / 0"))

    with pytest.raises(InternalError, match=r"failed to load model 'm': model.py:10: division by zero"):
        workbench.load(CONFIG + TENSORS)


def test_nothing_to_serve_is_reported(workbench):
    with pytest.raises(NotFoundError, match="unable to find"):
        workbench.load(CONFIG + TENSORS)
    with pytest.raises(InvalidArgumentError, match=r"asks for the runtime 'other\.py'"):
        workbench.load(CONFIG.replace("model.py", "other.py") + TENSORS)


def test_loads_and_unloads_leave_no_modules_behind(workbench):
    workbench.path("model.py").write_text(SCALE)
    before = set(sys.modules)

    gc.disable()
    try:
        for _ in range(5):
            loaded = workbench.load(CONFIG + TENSORS)
            loaded.execute(sent(3))
            loaded.model.close()
        after = set(sys.modules)
    finally:
        gc.enable()

    assert {name for name in after - before if name.startswith("naiad_torch_model_")} == set()


@pytest.mark.parametrize("code", ["import torch\nfail", "import torch"])
def test_a_file_that_cannot_be_used_leaves_no_module_behind(workbench, code):
    workbench.path("model.py").write_text(code)
    before = set(sys.modules)

    with pytest.raises(InvalidArgumentError) as caught:
        workbench.load(CONFIG + TENSORS)

    assert caught.value.__traceback__ is not None
    assert not any(name.startswith("naiad_torch_model_") for name in set(sys.modules) - before)
