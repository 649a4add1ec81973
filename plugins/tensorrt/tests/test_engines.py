"""Opening engines: what is asked of TensorRT, and what it refuses."""

import ctypes.util
import shutil
import subprocess
import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace

import pytest
import tensorrt_lean_bindings as lean
import tensorrt_rtx_bindings as rtx

from naiad.errors import InvalidArgumentError, UnsupportedError
from naiad_tensorrt import engines
from naiad_tensorrt.engines import Opening, open_engine, register_plugins
from naiad_tensorrt.machine import Gpus
from naiad_tensorrt.runtime import logger_of

from . import building

without_gpu = pytest.mark.skipif(Gpus().device_count() > 0, reason="there is a GPU, on which engines are opened")


def pretended(refusal: str = "", streamable: int = 0, cores: int = 0) -> ModuleType:
    """A module of TensorRT whose runtime opens one engine without inputs, or refuses every engine."""
    trt = ModuleType("pretended")
    trt.__version__ = "11.0"
    trt.ILogger = lean.ILogger
    trt.EngineStat = SimpleNamespace(TOTAL_WEIGHTS_SIZE=0)
    engine = SimpleNamespace(
        num_io_tensors=0,
        num_optimization_profiles=1,
        streamable_weights_size=streamable,
        weight_streaming_budget_v2=streamable,
        get_engine_stat=lambda _stat: 5000,
    )

    def deserialize(_plan):
        if not refusal:
            return engine
        logger_of(trt).log(lean.ILogger.Severity.ERROR, refusal)
        return None

    trt.Runtime = lambda _log: SimpleNamespace(num_DLA_cores=cores, deserialize_cuda_engine=deserialize)
    return trt


@pytest.fixture
def opened(monkeypatch):
    """Opens an engine by a pretended module."""

    def open_by(trt, opening=None):
        monkeypatch.setattr(engines, "runtime_for", lambda _plan, _model: trt)
        return open_engine(b"ftrt", "m", opening or Opening())

    return open_by


def test_an_engine_is_described_with_the_bytes_of_its_weights(opened):
    actual = opened(pretended())

    assert (actual.description.tensors, actual.weights) == ((), 5000)
    assert not hasattr(actual.runtime, "engine_host_code_allowed")


def test_the_code_that_an_engine_brings_along_is_trusted_where_asked(opened):
    assert opened(pretended(), Opening(version_compatible=True)).runtime.engine_host_code_allowed is True


@pytest.mark.parametrize(("budget", "kept", "weights"), [(1000, 1000, 3000), (9000, 3000, 5000), (0, 0, 2000)])
def test_weights_are_streamed_as_far_as_they_can_be(opened, budget, kept, weights):
    actual = opened(pretended(streamable=3000), Opening(weight_budget=budget))

    assert (actual.engine.weight_streaming_budget_v2, actual.weights) == (kept, weights)


def test_an_engine_that_cannot_stream_its_weights_says_so(opened):
    with pytest.raises(InvalidArgumentError, match="has the parameter weight_streaming_budget, and its engine cannot"):
        opened(pretended(), Opening(weight_budget=1))


def test_a_core_of_the_accelerator_is_set_before_the_engine_is_read(opened):
    assert opened(pretended(cores=2), Opening(dla_core=1)).runtime.DLA_core == 1
    with pytest.raises(UnsupportedError, match=r"model 'm' needs core 1 of .* \(DLA\), and this device has 1 cores"):
        opened(pretended(cores=1), Opening(dla_core=1))


@pytest.mark.parametrize(
    ("refusal", "step"),
    [
        ("Version tag does not match", "build it again with version 11.0 for this GPU"),
        (
            "could not find plugin: Mine",
            "name the libraries of its plugins with --backend-config=tensorrt,plugins=PATH",
        ),
        (
            "Cannot deserialize engine with lean runtime since IRuntime::getEngineHostCodeAllowed() is false",
            "trust it with --backend-config=tensorrt,version-compatible=true",
        ),
    ],
)
def test_what_tensorrt_says_of_an_engine_that_it_refuses_is_reported_with_a_next_step(opened, refusal, step):
    with pytest.raises(InvalidArgumentError) as caught:
        opened(pretended(refusal))

    assert str(caught.value).startswith(f"unable to load the engine of model 'm': {refusal}; ")
    assert step in str(caught.value)


@without_gpu
def test_a_real_engine_is_refused_in_words_where_no_driver_is():
    with pytest.raises(InvalidArgumentError, match="model 'm': IRuntime::deserializeCuda"):
        open_engine(building.add_sub(), "m", Opening())


@without_gpu
def test_a_runtime_that_finds_no_driver_is_an_error_and_not_the_end_of_the_process():
    """The lean runtime gives an object without anything in it then, which must not be used."""
    program = """
import tensorrt_lean_bindings
from naiad.errors import UnsupportedError
from naiad_tensorrt.engines import Opening, open_engine

try:
    open_engine(b"ftrt" + bytes(60), "m", Opening())
except UnsupportedError as error:
    print(error)
"""
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)

    assert ran.returncode == 0, ran.stderr
    assert "cannot use the GPU: createInferRuntime" in ran.stdout


def test_libraries_of_plugins_are_loaded(opened):
    library = Path(ctypes.util.find_library("m") or "libm.so.6")

    register_plugins(pretended(), [library], "m")


@pytest.mark.skipif(shutil.which("cc") is None, reason="there is no compiler")
def test_what_the_registry_of_tensorrt_says_of_a_library_is_reported(tmp_path):
    source, library = tmp_path / "empty.c", tmp_path / "empty.so"
    source.write_text("void *const *getCreators(int *n) { *n = 0; return 0; } void setLoggerFinder(void *f) { }")
    subprocess.run(["cc", "-shared", "-fPIC", "-o", library, source], check=True)
    kept = rtx.Runtime(logger_of(rtx))

    with pytest.raises(
        InvalidArgumentError, match=r"of model 'm' cannot be loaded: .*No creator returned by getPluginCr"
    ):
        register_plugins(rtx, [library], "m")
    assert kept is not None


def test_a_library_of_plugins_that_is_not_there_is_named(tmp_path):
    with pytest.raises(InvalidArgumentError, match=r"the plugin library '.*/none\.so' of model 'm' cannot be loaded"):
        register_plugins(pretended(), [tmp_path / "none.so"], "m")
