"""CUDA functions over plain integers; the only module here that imports CUDA.

Addresses and handles are integers, sizes are bytes. Every function raises CudaError where CUDA reports an error, and
PluginError where the package `cuda-bindings` is missing. The package is imported by the first call.
"""

from functools import cache
from importlib import import_module
from typing import Any

from naiad.errors import InternalError, PluginError, UnsupportedError

FATAL = frozenset({214, 220, 226, 700, 702, 709, 710, 714, 715, 716, 717, 718, 719, 721, 810, 911})
"""The errors after which a process cannot use its devices any more.

Source: CUDA Runtime API, enum cudaError ("the process must be terminated and relaunched"), and besides the
uncorrectable errors of memory (214) and of NVLink (220), and the destroyed context (709).
"""

_NO_DRIVER, _NO_DEVICE, _OUT_OF_MEMORY = 35, 100, 2


class CudaError(InternalError):
    """CUDA reported an error; `number` is its value in the enum cudaError."""

    def __init__(self, message: str, number: int) -> None:
        super().__init__(message)
        self.number = number

    @property
    def is_fatal(self) -> bool:
        """Whether every further call of this process fails as well."""
        return self.number in FATAL

    @property
    def is_out_of_memory(self) -> bool:
        """Whether there was too little memory, which leaves everything as it was."""
        return self.number == _OUT_OF_MEMORY


@cache
def _runtime() -> Any:
    try:
        return import_module("cuda.bindings.runtime")
    except ImportError as error:
        raise PluginError(
            f"naiad-tensorrt needs the package cuda-bindings, which cannot be imported ({error}); "
            "run pip install 'cuda-bindings>=12.6,<14'"
        ) from error


def _call(name: str, *arguments: Any) -> Any:
    runtime = _runtime()
    status, *values = getattr(runtime, name)(*arguments)
    if int(status) != 0:
        reason = runtime.cudaGetErrorString(status)[1]
        raise CudaError(f"{name} failed: {reason.decode()} (CUDA error {int(status)})", int(status))
    return values[0] if len(values) == 1 else tuple(values)


def device_count() -> int:
    """The number of GPUs; 0 where there is none, no driver, or a driver that is too old for `cuda-bindings`."""
    try:
        return int(_call("cudaGetDeviceCount"))
    except CudaError as error:
        if error.number in (_NO_DRIVER, _NO_DEVICE):
            return 0
        raise


def compute_capability(device: int) -> str:
    """The compute capability of a GPU, as `9.0`. Raises UnsupportedError when this machine does not have the GPU."""
    count = device_count()
    if device >= count:
        raise UnsupportedError(
            f"there is no GPU {device} for TensorRT: CUDA finds {count} on this machine; TensorRT runs on NVIDIA GPUs "
            "only, so check that there is one and that `nvidia-smi` shows its driver, not older than cuda-bindings"
        )
    attributes = _runtime().cudaDeviceAttr
    major = _call("cudaDeviceGetAttribute", attributes.cudaDevAttrComputeCapabilityMajor, device)
    minor = _call("cudaDeviceGetAttribute", attributes.cudaDevAttrComputeCapabilityMinor, device)
    return f"{major}.{minor}"


def use_device(device: int) -> None:
    """Let the calling thread work on that GPU from now on."""
    _call("cudaSetDevice", device)


def priority_range() -> tuple[int, int]:
    """The lowest and the highest priority of streams; the higher, the smaller the number."""
    least, greatest = _call("cudaDeviceGetStreamPriorityRange")
    return int(least), int(greatest)


def create_stream(priority: int) -> int:
    """A stream that does not wait for the default stream."""
    return int(_call("cudaStreamCreateWithPriority", _runtime().cudaStreamNonBlocking, priority))


def destroy_stream(stream: int) -> None:
    """Let go of a stream on which nothing runs."""
    _call("cudaStreamDestroy", stream)


def synchronize_stream(stream: int) -> None:
    """Wait until everything on the stream is done; an error of any of it is raised here."""
    _call("cudaStreamSynchronize", stream)


def let_stream_wait(stream: int, event: int) -> None:
    """What is put on the stream from now on starts after the event."""
    _call("cudaStreamWaitEvent", stream, event, 0)


def create_event(blocking: bool) -> int:
    """An event. A thread that waits for a `blocking` event sleeps; for any other it spins."""
    runtime = _runtime()
    flags = runtime.cudaEventDisableTiming | (runtime.cudaEventBlockingSync if blocking else 0)
    return int(_call("cudaEventCreateWithFlags", flags))


def destroy_event(event: int) -> None:
    """Destroy an event that no thread waits for."""
    _call("cudaEventDestroy", event)


def record_event(event: int, stream: int) -> None:
    """The event happens when all that is on the stream now is done."""
    _call("cudaEventRecord", event, stream)


def wait_event(event: int) -> None:
    """Wait until the event has happened; an error of what came before it is raised here."""
    _call("cudaEventSynchronize", event)


def allocate(size: int) -> int:
    """Memory of the thread's GPU, aligned to 256 bytes or more."""
    return int(_call("cudaMalloc", size))


def free(address: int) -> None:
    """Give memory of a GPU back, after all work on the GPU is done."""
    _call("cudaFree", address)


def allocate_pinned(size: int) -> int:
    """Page-locked host memory, which GPUs copy from and to without the CPU."""
    return int(_call("cudaHostAlloc", size, _runtime().cudaHostAllocDefault))


def free_pinned(address: int) -> None:
    """Give page-locked memory back."""
    _call("cudaFreeHost", address)


def copy_to_device(target: int, source: int, size: int, stream: int) -> None:
    """Enqueue a copy from host memory. Pageable memory must not change until the copy is done."""
    _call("cudaMemcpyAsync", target, source, size, _runtime().cudaMemcpyKind.cudaMemcpyHostToDevice, stream)


def copy_to_host(target: int, source: int, size: int, stream: int) -> None:
    """Put a copy to host memory on the stream."""
    _call("cudaMemcpyAsync", target, source, size, _runtime().cudaMemcpyKind.cudaMemcpyDeviceToHost, stream)


def copy_on_device(target: int, source: int, size: int, stream: int) -> None:
    """Put a copy from the GPU's memory to the GPU's memory on the stream."""
    _call("cudaMemcpyAsync", target, source, size, _runtime().cudaMemcpyKind.cudaMemcpyDeviceToDevice, stream)


def fill_zero(address: int, size: int, stream: int) -> None:
    """Put the filling of GPU memory with zeros on the stream."""
    _call("cudaMemsetAsync", address, 0, size, stream)


def begin_capture(stream: int) -> None:
    """What this thread puts on the stream from now on is written down, not done; other threads are not disturbed."""
    _call("cudaStreamBeginCapture", stream, _runtime().cudaStreamCaptureMode.cudaStreamCaptureModeThreadLocal)


def end_capture(stream: int) -> int:
    """The graph of what was put on the stream since `begin_capture`, ready to be launched.

    Raises CudaError, and the stream is as before, when something cannot be part of a graph.
    """
    graph = _call("cudaStreamEndCapture", stream)
    try:
        return int(_call("cudaGraphInstantiate", graph, 0))
    finally:
        _call("cudaGraphDestroy", graph)


def launch_graph(graph: int, stream: int) -> None:
    """Put the graph on the stream."""
    _call("cudaGraphLaunch", graph, stream)


def destroy_graph(graph: int) -> None:
    """Let go of a graph that does not run."""
    _call("cudaGraphExecDestroy", graph)
