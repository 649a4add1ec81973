"""What a model may do to its whole process: libraries that prepare it, and the knobs of TorchScript."""

import logging
import shutil
import subprocess

import numpy as np
import pytest
import torch

from naiad.errors import InvalidArgumentError
from naiad_testing.workbench import parameter_entry, tensor_entry
from naiad_torch import process
from naiad_torch.parameters import RunSettings

from .written import ADD_SUB

LIBRARY = """
#include <stdio.h>

static int write(const char *folder, const char *word, int device) {
    char path[4096];
    snprintf(path, sizeof path, "%s/message", folder);
    FILE *file = fopen(path, "a");
    if (!file) return 3;
    fprintf(file, "%s %d\\n", word, device);
    return fclose(file);
}

static char kept[4096];

int triton_pytorch_model_init(const char *folder, int device) {
    snprintf(kept, sizeof kept, "%s", folder);
    return REFUSES ? 7 : write(folder, "init", device);
}

void triton_pytorch_model_fini(void) { write(kept, "fini", 0); }
"""
LIBRARY_ENTRY = parameter_entry("MODEL_INIT_LIBRARY", "libprepare.so")
USES_IT = ADD_SUB + LIBRARY_ENTRY
ONE_OUTPUT = tensor_entry("output", "OUTPUT__0", "FP32", "4")


@pytest.fixture
def build(workbench, tmp_path):
    """Compile the library into the model's folder."""
    compiler = shutil.which("cc")
    if compiler is None:
        pytest.skip("there is no C compiler here")

    def make(refuses):
        source, library = tmp_path / "prepare.c", workbench.path("x").parent.parent / "libprepare.so"
        source.write_text(LIBRARY)
        command = [compiler, "-shared", "-fPIC", f"-DREFUSES={refuses}", "-o", library, source]
        subprocess.run(command, check=True)

    return make


def test_a_library_is_reported_when_a_model_comes_and_goes(workbench, models, build):
    build(refuses=0)
    message = workbench.path("message")

    served = workbench.script(models.AddSub(), USES_IT)
    before = message.read_text()
    served.instance.close()
    served.model.close()

    assert (before, message.read_text()) == ("init -1\n", "init -1\nfini 0\n")


def test_a_library_is_reported_when_a_model_cannot_be_loaded(workbench, models, build):
    build(refuses=0)

    with pytest.raises(InvalidArgumentError, match="model provides 2"):
        workbench.script(models.AddSub(), tensor_entry("input", "x", "FP32", "4") + ONE_OUTPUT + LIBRARY_ENTRY)

    assert workbench.path("message").read_text() == "init -1\nfini 0\n"


def test_a_library_that_refuses_fails_the_load(workbench, models, build):
    build(refuses=1)

    with pytest.raises(InvalidArgumentError, match=r"MODEL_INIT_LIBRARY 'libprepare\.so' of model 'm' failed with 7"):
        workbench.script(models.AddSub(), USES_IT)


@pytest.mark.parametrize(
    ("library", "message"),
    [("../x.so", "leaves"), ("missing.so", "cannot be used"), ("1/model.pt", "cannot be used")],
)
def test_a_library_that_cannot_be_used_fails_the_load(workbench, models, library, message):
    with pytest.raises(InvalidArgumentError, match=f"MODEL_INIT_LIBRARY '{library}' of model 'm' {message}"):
        workbench.script(models.AddSub(), ADD_SUB + parameter_entry("MODEL_INIT_LIBRARY", library))


@pytest.fixture
def knobs(monkeypatch):
    """The knobs of TorchScript, all of them on; they are put back."""
    monkeypatch.setattr(process, "_chosen", {})
    turn = (torch._C._jit_set_profiling_executor, torch._C._jit_set_profiling_mode)
    before = [each(True) for each in turn]  # each gives what was set before
    fuser, set_fuser = torch._C._jit_texpr_fuser_enabled(), torch._C._jit_set_texpr_fuser_enabled
    yield
    set_fuser(fuser)
    for each, kept in zip(turn, before, strict=True):
        each(kept)


@pytest.mark.usefixtures("knobs")
def test_the_knobs_of_torchscript_are_turned(workbench, models):
    settings = RunSettings(tensor_fuser=False, jit_profiling=False, jit_executor=False)

    process.configure_process(settings, logging.LoggerAdapter(logging.getLogger("naiad.model"), {}))

    assert not torch._C._jit_texpr_fuser_enabled()
    assert torch._C._jit_set_profiling_mode(False) is False
    assert torch._C._jit_set_profiling_executor(False) is False
    one = {name: np.ones((1, 4), np.float32) for name in ("a", "b")}
    assert workbench.script(models.AddSub(), ADD_SUB).execute(one)["OUTPUT__0"].tolist() == [[2.0] * 4]


@pytest.mark.usefixtures("knobs")
def test_cudnn_is_off_for_the_whole_process_once_a_model_asks_for_it(workbench, models, monkeypatch):
    monkeypatch.setattr(torch.backends.cudnn, "enabled", True)  # which puts it back
    one = {name: np.ones((1, 4), np.float32) for name in ("a", "b")}

    served = workbench.script(models.AddSub(), ADD_SUB + parameter_entry("DISABLE_CUDNN", "true"))

    assert served.execute(one)["OUTPUT__0"].tolist() == [[2.0] * 4]
    assert not torch.backends.cudnn.enabled


@pytest.mark.usefixtures("knobs")
def test_a_knob_that_pytorch_lacks_has_no_effect(caplog, monkeypatch):
    monkeypatch.delattr(torch._C, "_jit_set_texpr_fuser_enabled")
    settings = RunSettings(tensor_fuser=False, jit_profiling=False)

    process.configure_process(settings, logging.LoggerAdapter(logging.getLogger("naiad.model"), {}))

    assert "ENABLE_TENSOR_FUSER has no effect" in caplog.text
    assert torch._C._jit_set_profiling_mode(False) is False
