"""Models as a class in Python (`runtime: "model.py"`)."""

import numpy as np
import pytest
import torch

from naiad.errors import InternalError, InvalidArgumentError, NotFoundError

from .written import tensor

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
TENSORS = tensor("input", "x", "FP32", "2") + tensor("output", "y", "FP32", "2")


def given(value):
    return {"x": np.full((1, 2), value, np.float32)}


def test_the_first_module_of_the_file_is_served(workbench):
    workbench.path("model.py").write_text(SCALE)

    answer = workbench.load(CONFIG + TENSORS).execute(given(3), given(4))

    assert answer["y"].tolist() == [[6.0, 6.0], [8.0, 8.0]]


def test_weights_lie_beside_the_file(workbench):
    workbench.path("model.py").write_text(SCALE)
    torch.save({"factor": torch.tensor(5.0)}, workbench.path("model.pt"))

    assert workbench.load(CONFIG + TENSORS).execute(given(3))["y"].tolist() == [[15.0, 15.0]]


def test_weights_that_would_run_code_are_refused(workbench):
    workbench.path("model.py").write_text(SCALE)
    torch.save({"factor": print}, workbench.path("model.pt"))

    with pytest.raises(InternalError, match="failed to load model 'm'"):
        workbench.load(CONFIG + TENSORS)


def test_a_module_is_compiled_where_that_is_asked_for(workbench, monkeypatch):
    asked = []
    monkeypatch.setattr(torch, "compile", lambda module, **arguments: asked.append(arguments) or module)
    workbench.path("model.py").write_text(SCALE)
    parameter = (
        'parameters { key: "TORCH_COMPILE_OPTIONAL_PARAMETERS" value { string_value: "{\\"dynamic\\": true}" } }'
    )

    workbench.load(CONFIG + TENSORS)
    assert not asked

    workbench.load(CONFIG + TENSORS + parameter)
    assert asked == [{"dynamic": True}]


def test_torchscript_stands_in_for_a_file_that_is_not_there(workbench, models):
    workbench.script(models.Identity(), "max_batch_size: 4 " + TENSORS)

    assert workbench.load(CONFIG + TENSORS).execute(given(3))["y"].tolist() == [[3.0, 3.0]]


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("import torch\nx = 1\n", "Cannot find a subclass of torch.nn.Module"),
        ("from torch import nn\n\nclass M(nn.Module)\n", r"failed to load model 'm': model.py:3: SyntaxError"),
        ("import torch\n\nraise ValueError('oh')\n", "failed to load model 'm': model.py:3: ValueError: oh"),
    ],
)
def test_a_file_without_a_model_is_refused_with_its_line(workbench, text, told):
    workbench.path("model.py").write_text(text)

    with pytest.raises(InvalidArgumentError, match=told):
        workbench.load(CONFIG + TENSORS)


def test_a_module_that_cannot_be_made_tells_its_line(workbench):
    workbench.path("model.py").write_text(SCALE.replace("super().__init__()", "1 / 0"))

    with pytest.raises(InternalError, match=r"failed to load model 'm': model.py:10: division by zero"):
        workbench.load(CONFIG + TENSORS)


def test_nothing_to_serve_is_told(workbench):
    with pytest.raises(NotFoundError, match="unable to find"):
        workbench.load(CONFIG + TENSORS)
    with pytest.raises(InvalidArgumentError, match=r"asks for the runtime 'other\.py'"):
        workbench.load(CONFIG.replace("model.py", "other.py") + TENSORS)
