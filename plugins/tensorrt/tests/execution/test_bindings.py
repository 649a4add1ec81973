"""What execution calls of CUDA and of TensorRT, held against the modules that are really installed."""

import ast
import inspect
from pathlib import Path

import pytest
import tensorrt_lean_bindings as lean
import tensorrt_rtx_bindings as rtx
from cuda.bindings import runtime

from naiad.errors import UnsupportedError
from naiad_tensorrt import execution
from naiad_tensorrt.execution import cuda, outputs
from naiad_tensorrt.execution.cuda_protocol import Cuda

from .fake_cuda import FakeCuda

SOURCES = sorted(Path(execution.__file__).parent.glob("*.py"))
CALLED_ON = {
    "self._context": "IExecutionContext",
    "context": "IExecutionContext",
    "self._engine": "ICudaEngine",
    "config": "IRuntimeConfig",
    "trt": "",
    "self._trt": "",
}
"""Of which class of TensorRT (or of the module, "") the names in our sources are."""

RTX_ALONE = {"CudaGraphStrategy", "DynamicShapesKernelSpecializationStrategy", "IRuntimeConfig"}


def calls_of_cuda():
    """The name of each function of CUDA that `cuda.py` calls, and with how many arguments."""
    nodes = ast.walk(ast.parse(Path(cuda.__file__).read_text()))
    calls = [node for node in nodes if isinstance(node, ast.Call) and ast.unparse(node.func) == "_call"]
    return [pytest.param(call.args[0].value, len(call.args) - 1, id=call.args[0].value) for call in calls]


def uses_of_tensorrt():
    """Each attribute of an object of TensorRT that our sources use: of what, its name, and the arguments of a call."""
    actual = {}
    for node in (node for path in SOURCES for node in ast.walk(ast.parse(path.read_text()))):
        if isinstance(node, ast.Attribute) and ast.unparse(node.value) in CALLED_ON:
            actual.setdefault((ast.unparse(node.value), node.attr), None)
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            owner = ast.unparse(node.func.value)
            if owner in CALLED_ON:
                actual[owner, node.func.attr] = len(node.args)
    return [
        pytest.param(getattr(module, CALLED_ON[owner], module), name, count, id=f"{module.__name__}-{owner}.{name}")
        for module in (rtx, lean)
        for (owner, name), count in actual.items()
        if module is rtx or not RTX_ALONE & {CALLED_ON[owner], name}
    ]


@pytest.mark.parametrize(("name", "count"), calls_of_cuda())
def test_cuda_has_each_function_that_is_called(name, count):
    inspect.signature(getattr(runtime, name)).bind(*range(count))


def test_cuda_has_each_constant_that_is_named():
    source = ast.parse(Path(cuda.__file__).read_text())
    named = [
        node.attr
        for node in ast.walk(source)
        if isinstance(node, ast.Attribute) and ast.unparse(node.value) in ("runtime", "_runtime()")
    ]

    assert "cudaEventBlockingSync" in named
    assert [name for name in named if not hasattr(runtime, name)] == []
    kinds = runtime.cudaMemcpyKind
    assert [kinds.cudaMemcpyHostToDevice, kinds.cudaMemcpyDeviceToHost, kinds.cudaMemcpyDeviceToDevice] == [1, 2, 3]
    assert runtime.cudaStreamCaptureMode.cudaStreamCaptureModeThreadLocal == 1
    attributes = runtime.cudaDeviceAttr
    assert attributes.cudaDevAttrComputeCapabilityMajor == 75
    assert attributes.cudaDevAttrComputeCapabilityMinor == 76


def test_every_error_after_which_cuda_wants_a_new_process_is_fatal():
    message = {
        int(error) for error in runtime.cudaError_t if "must be terminated" in " ".join((error.__doc__ or "").split())
    }

    assert message <= cuda.FATAL
    assert cuda.FATAL - message <= {214, 220, 709}


def test_without_a_gpu_every_function_says_so_in_words_of_cuda():
    if cuda.device_count():
        pytest.skip("there is a GPU")
    names = [name for name in vars(Cuda) if not name.startswith("_")]

    for name in names:
        function = getattr(cuda, name)
        with pytest.raises(cuda.CudaError, match=r"\(CUDA error 35\)|\(CUDA error 100\)"):
            function(*[0 for _ in inspect.signature(function).parameters])


def test_without_a_gpu_there_is_no_compute_capability():
    if cuda.device_count():
        pytest.skip("there is a GPU")

    with pytest.raises(UnsupportedError, match=r"there is no GPU 0 for TensorRT: CUDA finds 0 on this machine"):
        cuda.compute_capability(0)


@pytest.mark.parametrize("name", [name for name in vars(Cuda) if not name.startswith("_")])
def test_the_device_of_the_tests_takes_what_cuda_takes(name):
    real = list(inspect.signature(getattr(cuda, name)).parameters)

    assert list(inspect.signature(getattr(FakeCuda, name)).parameters)[1:] == real


@pytest.mark.parametrize(("owner", "name", "count"), uses_of_tensorrt())
def test_tensorrt_has_what_is_used(owner, name, count):
    used = getattr(owner, name)

    if count is not None:
        signatures = [line for line in used.__doc__.splitlines() if f"{name}(self: " in line]
        assert any(_takes(line, count) for line in signatures), f"{name} takes {signatures}, and is called with {count}"


def _takes(signature, count):
    arguments = signature.partition("(self: ")[2].rpartition(") ->")[0].split(", ")[1:]
    required = [argument for argument in arguments if " = " not in argument]
    return len(required) <= count <= len(arguments)


def test_the_strategies_and_kinds_of_graphs_are_those_of_tensorrt():
    assert set(rtx.ExecutionContextAllocationStrategy.__members__) == {"STATIC", "ON_PROFILE_CHANGE", "USER_MANAGED"}
    assert {"DISABLED", "WHOLE_GRAPH_CAPTURE"} <= set(rtx.CudaGraphStrategy.__members__)
    assert "EAGER" in rtx.DynamicShapesKernelSpecializationStrategy.__members__
    for name in ("cuda_graph_strategy", "dynamic_shapes_kernel_specialization_strategy"):
        assert getattr(rtx.IRuntimeConfig, name).fset is not None


def test_an_allocator_of_tensorrt_can_be_made_and_answers_with_addresses():
    class Buffer:
        def reserve(self, size):
            return 4096 + size

    late = outputs.LateOutput(rtx, Buffer())
    address = late.allocator.reallocate_output_async("y", 0, 8, 256, 0)
    late.allocator.notify_shape("y", rtx.Dims([2, 3]))

    assert isinstance(late.allocator, rtx.IOutputAllocator)
    assert address == late.allocator.reallocate_output("y", 0, 8, 256) == 4104
    assert late.shape == (2, 3)
