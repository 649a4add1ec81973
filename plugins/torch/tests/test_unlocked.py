"""Compiled packages that run without the interpreter's lock."""

import ctypes
import shutil
import sys
import zipfile

import pytest
import torch

from naiad_testing.workbench import parameter_entry
from naiad_torch import unlocked as under_test
from naiad_torch.unlocked import TESTED_VERSIONS, library_in, unlocked

from .written import ADD_SUB, ones

CONFIG = 'platform: "torch_aoti" ' + ADD_SUB.replace('"a"', '"INPUT__0"').replace('"b"', '"INPUT__1"')
RELEASED = CONFIG + parameter_entry("RELEASE_INTERPRETER_LOCK", "1")


@pytest.fixture
def model(compiled):
    return unlocked(library_in(compiled))


def test_results_are_those_of_pytorch_s_own_loader(compiled, model):
    feeds = [torch.rand(3, 4), torch.rand(3, 4)]
    with torch.inference_mode():
        expected = torch._inductor.aoti_load_package(str(compiled)).loader.boxed_run(list(feeds))

        results = model.run(feeds)

    assert [each.tolist() for each in results] == [each.tolist() for each in expected]


def test_results_are_freed_with_their_last_reference(model):
    feeds = [torch.rand(1, 4), torch.rand(1, 4)]
    before = sys.getrefcount(feeds[0])

    with torch.inference_mode():
        results = model.run(feeds)

    after = sys.getrefcount(feeds[0])
    assert [each._use_count() for each in results] == [1, 1]
    assert (after, feeds[0]._use_count()) == (before, 1)


def test_the_interpreter_is_free_while_it_runs(model):
    keeps_the_lock = 4  # FUNCFLAG_PYTHONAPI of CPython's ctypes.h, which functions of a PyDLL have

    assert not model._run._flags_ & keeps_the_lock
    assert ctypes.pythonapi.Py_IsInitialized._flags_ & keeps_the_lock


def test_tensors_that_are_missing_are_an_error(model):
    with pytest.raises(RuntimeError, match="takes 2 tensors and was given 1"):
        model.run([torch.rand(1, 4)])


def test_packages_with_something_beside_their_library_take_pytorch_s_loader(compiled, tmp_path):
    path = tmp_path / "model.pt2"
    shutil.copy(compiled, path)
    with zipfile.ZipFile(path, "a") as package:
        package.writestr("model/data/aotinductor/model/extern_nodes.json", "{}")

    assert library_in(path) is None


def test_the_installed_pytorch_is_a_tested_version():
    assert torch.__version__.partition("+")[0] in TESTED_VERSIONS


@pytest.mark.parametrize("version", ["2.13.1", "2.13.0.dev20261101", "2.12.0+cpu", "3.0"])
def test_other_versions_take_pytorch_s_own_loader(workbench, compiled, monkeypatch, caplog, version):
    shutil.copy(compiled, workbench.path("model.pt2"))
    monkeypatch.setattr(torch, "__version__", version)
    created = []
    monkeypatch.setattr(under_test, "UnlockedModel", created.append)

    with caplog.at_level("WARNING"):
        answer = workbench.load(RELEASED).execute({"INPUT__0": ones(1, 3), "INPUT__1": ones(1)})

    assert created == []
    assert answer["OUTPUT__0"].tolist() == [[4.0] * 4]
    assert f"RELEASE_INTERPRETER_LOCK has no effect with PyTorch {version}" in caplog.text


@pytest.mark.parametrize(("config", "releases"), [(CONFIG, False), (RELEASED, True)], ids=["default", "opt-in"])
def test_a_served_package_releases_the_lock_only_where_its_configuration_asks(
    workbench, compiled, monkeypatch, config, releases
):
    shutil.copy(compiled, workbench.path("model.pt2"))
    runs = []
    run = under_test.UnlockedModel.run
    monkeypatch.setattr(under_test.UnlockedModel, "run", lambda self, feeds: runs.append(1) or run(self, feeds))

    answer = workbench.load(config).execute({"INPUT__0": ones(1, 3), "INPUT__1": ones(1)})

    assert bool(runs) == releases
    assert answer["OUTPUT__0"].tolist() == [[4.0] * 4]
