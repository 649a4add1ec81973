"""Execution contexts of an engine, with the activation memory between its layers."""

import threading
from types import ModuleType
from typing import Any

from naiad.errors import ModelFailedError
from naiad_tensorrt.execution.buffers import DeviceBuffer
from naiad_tensorrt.execution.cuda_protocol import Cuda

USER_MANAGED = "USER_MANAGED"

_making = threading.Lock()
"""Held while an engine, which several threads may share, makes a context: TensorRT promises nothing for that."""


class Contexts:
    """Makes contexts on one stream.

    Those of strategy `USER_MANAGED`, and those for CUDA graphs, share one workspace, so only one of them may run at a
    time. TensorRT needs a context of its own for each graph, whose memory stays where it is.

    TensorRT for RTX compiles kernels when a context first runs them: the contexts of one object share what it has
    compiled, and those for graphs compile for their shapes at once and not beside the first runs.
    """

    def __init__(self, trt: ModuleType, engine: Any, cuda: Cuda, stream: int) -> None:
        self._trt = trt
        self._engine = engine
        self._cuda = cuda
        self._stream = stream
        self._workspace = DeviceBuffer(cuda)
        self._owned = 0
        self._compiled: Any = None
        self.captures_itself = hasattr(trt, "CudaGraphStrategy")

    @property
    def memory(self) -> int:
        """The bytes of GPU memory that the contexts hold for activations."""
        return self._owned + self._workspace.size

    def make(self, profile: int, strategy: str, for_graph: bool = False) -> Any:
        """An `IExecutionContext` on a profile, with the allocation strategy of that name of TensorRT.

        Raises ModelFailedError where TensorRT makes none, and CudaError for too little memory for the workspace.
        """
        strategy = USER_MANAGED if for_graph else strategy
        kind = getattr(self._trt.ExecutionContextAllocationStrategy, strategy)
        with _making:
            configured = self._config(kind, for_graph) if self.captures_itself else kind
            context = self._engine.create_execution_context(configured)
        if context is None:
            raise ModelFailedError(f"TensorRT made no execution context for profile {profile}")
        if not context.set_optimization_profile_async(profile, self._stream):
            raise ModelFailedError(f"TensorRT did not take profile {profile} of {self._count} for a context")
        self._cuda.synchronize_stream(self._stream)
        size = int(self._engine.device_memory_size_v2)
        if strategy == USER_MANAGED:
            context.set_device_memory(self._workspace.reserve(size), self._workspace.size)
        else:
            own = size if strategy == "STATIC" else self._engine.get_device_memory_size_for_profile_v2(profile)
            self._owned += int(own)
        return context

    def close(self) -> None:
        """Give the workspace back, after the contexts are gone."""
        self._compiled = None
        self._owned = 0
        self._workspace.close()

    @property
    def _count(self) -> int:
        return int(self._engine.num_optimization_profiles)

    def _config(self, strategy: Any, for_graph: bool) -> Any:
        trt, config = self._trt, self._engine.create_runtime_config()
        config.set_execution_context_allocation_strategy(strategy)
        graphs = trt.CudaGraphStrategy
        config.cuda_graph_strategy = graphs.WHOLE_GRAPH_CAPTURE if for_graph else graphs.DISABLED
        if for_graph:
            kernels = trt.DynamicShapesKernelSpecializationStrategy
            config.dynamic_shapes_kernel_specialization_strategy = kernels.EAGER
        if self._compiled is None:
            self._compiled = config.create_runtime_cache()
        config.set_runtime_cache(self._compiled)
        return config
