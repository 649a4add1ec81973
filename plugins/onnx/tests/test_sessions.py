"""How sessions are opened, shared and given back."""

import gc
import subprocess
import sys
import weakref
from pathlib import Path

import onnxruntime

from naiad.backend import MemoryUsage
from naiad_onnx.sessions import TESTED_VERSIONS


def parameter(key: str, text: str) -> str:
    return f'parameters {{ key: "{key}" value: {{ string_value: "{text}" }} }}'


def test_instances_on_the_cpu_share_a_session(workbench, models, opened):
    served = workbench.load(models.add_sub())

    assert len(served.instances) == 2
    assert len(opened) == 1


def test_instances_have_sessions_of_their_own_where_the_configuration_says_so(workbench, models, opened):
    served = workbench.load(models.add_sub(), parameter("share_session_between_instances", "false"))

    assert len(served.instances) == 2
    assert len(opened) == 2


def test_session_options_are_those_of_the_configuration(workbench, models, opened):
    workbench.load(
        models.add_sub(),
        "optimization { graph { level: 2 } }"
        + parameter("intra_op_thread_count", "1")
        + parameter("inter_op_thread_count", "2")
        + parameter("execution_mode", "1")
        + parameter("enable_mem_arena", "0")
        + parameter("enable_mem_pattern", "0")
        + parameter("session.use_device_allocator_for_initializers", "1"),
    )

    options = opened[0].get_session_options()
    assert options.graph_optimization_level == onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    assert options.intra_op_num_threads == 1
    assert options.inter_op_num_threads == 2
    assert options.execution_mode == onnxruntime.ExecutionMode.ORT_PARALLEL
    assert not options.enable_cpu_mem_arena
    assert not options.enable_mem_pattern
    assert options.get_session_config_entry("session.use_device_allocator_for_initializers") == "1"


def test_the_arena_is_shrunk_after_a_run_where_the_configuration_says_so(workbench, models, float_array):
    served = workbench.load(models.identity(["n", 1]), parameter("memory.enable_memory_arena_shrinkage", "cpu:0"))

    assert served.execute({"IN": float_array([[1]])})["OUT"].tolist() == [[1]]


def test_an_arena_of_a_device_that_the_session_is_not_on_is_left_alone(workbench, models, float_array):
    served = workbench.load(models.identity(["n", 1]), parameter("memory.enable_memory_arena_shrinkage", "gpu:0"))

    assert served.execute({"IN": float_array([[1]])})["OUT"].tolist() == [[1]]


def test_the_memory_of_the_weights_is_reported_for_each_session(workbench, models):
    shared = workbench.load(models.dense(64, 32))
    alone = workbench.load(models.dense(64, 32), parameter("share_session_between_instances", "0"))

    size = workbench.folder.path("model.onnx").stat().st_size
    assert shared.model.memory_usage() == [MemoryUsage("CPU", 0, size)]
    assert alone.model.memory_usage() == [MemoryUsage("CPU", 0, 2 * size)]


def test_a_closed_model_lets_go_of_its_session(workbench, models, opened):
    served = workbench.load(models.add_sub())
    session = weakref.ref(opened.pop())

    for instance in served.instances:
        instance.close()
    served.model.close()
    gc.collect()

    assert session() is None


def test_the_global_thread_pool_serves_all_models(tmp_path: Path, models):
    # ONNX Runtime keeps that pool for the rest of a process, so this needs one of its own.
    for name in ("one", "two"):
        model = tmp_path / name / "1" / "model.onnx"
        model.parent.mkdir(parents=True)
        model.write_bytes(models.dense().SerializeToString())
    program = f"""
import os, pathlib, numpy
from naiad.backend import Batch, ModelContext, Placement
from naiad_config import ModelConfig, ModelInstanceGroup
from naiad.types import Request
from naiad_tensors.tensors import Tensor
from naiad_onnx.backend import OnnxBackend

def threads():
    return len(os.listdir("/proc/self/task"))

settings = {{"enable-global-threadpool": "1", "intra_op_thread_count": "4"}}
backend = OnnxBackend()
counts = []
for name in ("one", "two"):
    directory = pathlib.Path({str(tmp_path)!r}) / name
    context = ModelContext(ModelConfig(name=name), 1, directory, directory / "1", settings)
    context = ModelContext(backend.complete(context), 1, directory, directory / "1", settings)
    instance = backend.load(context).instantiate(Placement(name, "CPU", 0, ModelInstanceGroup()))
    request = Request(name, {{"IN": Tensor.of("IN", numpy.ones((1, 64), numpy.float32))}})
    assert instance.execute(Batch([request], [1]))["OUT"][0, 0] == 64.0
    counts.append(threads())
print(counts[1] - counts[0])
"""
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)

    assert ran.stdout == "0\n"


def test_a_release_that_is_not_tested_reads_a_model_by_a_public_session(workbench, models, monkeypatch, opened):
    expected = workbench.complete(models.add_sub())
    by_private_session = len(opened)
    monkeypatch.setattr(onnxruntime, "__version__", "1.99.0")

    assert workbench.complete(models.add_sub()) == expected
    assert (by_private_session, len(opened)) == (0, 1)


def test_the_installed_onnx_runtime_is_a_tested_release():
    assert onnxruntime.__version__ in TESTED_VERSIONS
