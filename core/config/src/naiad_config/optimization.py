"""Messages of `ModelOptimizationPolicy`: the settings that backends read.

Field names, numbers and types are those of `model_config.proto` of the Open Inference Protocol's Triton extensions.
"""

from collections.abc import Mapping
from dataclasses import field
from enum import IntEnum
from typing import Annotated, ClassVar

from naiad_config.fields import Wire, message


class ModelPriority(IntEnum):
    """Whether the work of this model goes before or after that of others, for backends that can tell a device so."""

    PRIORITY_DEFAULT = 0
    PRIORITY_MAX = 1
    PRIORITY_MIN = 2


@message
class OptimizationGraph:
    """How much the framework rewrites the model's graph; 0 is its own default, and the other levels are its own too."""

    PROTO: ClassVar[str] = "ModelOptimizationPolicy.Graph"

    level: Annotated[int, Wire(1, "int32")] = 0


@message
class CudaGraphShape:
    """The shape of one input for which a CUDA graph is captured, without the batch dimension."""

    PROTO: ClassVar[str] = "ModelOptimizationPolicy.Cuda.GraphSpec.Shape"

    dim: Annotated[tuple[int, ...], Wire(1, "int64")] = ()


@message
class CudaGraphLowerBound:
    """The smallest batch and shapes that a captured CUDA graph may also serve."""

    PROTO: ClassVar[str] = "ModelOptimizationPolicy.Cuda.GraphSpec.LowerBound"

    batch_size: Annotated[int, Wire(1, "int32")] = 0
    input: Annotated[Mapping[str, CudaGraphShape], Wire(2)] = field(default_factory=dict)


@message
class CudaGraphSpec:
    """A batch size and input shapes for which a CUDA graph is captured when the model is loaded."""

    PROTO: ClassVar[str] = "ModelOptimizationPolicy.Cuda.GraphSpec"

    batch_size: Annotated[int, Wire(1, "int32")] = 0
    input: Annotated[Mapping[str, CudaGraphShape], Wire(2)] = field(default_factory=dict)
    graph_lower_bound: Annotated[CudaGraphLowerBound | None, Wire(3)] = None


@message
class OptimizationCuda:
    """Ways to work on a GPU: captured graphs, waiting in a loop, and a stream of its own for copying outputs."""

    PROTO: ClassVar[str] = "ModelOptimizationPolicy.Cuda"

    graphs: Annotated[bool, Wire(1)] = False
    busy_wait_events: Annotated[bool, Wire(2)] = False
    graph_spec: Annotated[tuple[CudaGraphSpec, ...], Wire(3)] = ()
    output_copy_stream: Annotated[bool, Wire(4)] = False


@message
class Accelerator:
    """An engine inside a framework that executes what it can of the model, with its settings."""

    PROTO: ClassVar[str] = "ModelOptimizationPolicy.ExecutionAccelerators.Accelerator"

    name: Annotated[str, Wire(1)] = ""
    parameters: Annotated[Mapping[str, str], Wire(2)] = field(default_factory=dict)


@message
class ExecutionAccelerators:
    """The accelerators to try on each kind of device, the preferred one first."""

    PROTO: ClassVar[str] = "ModelOptimizationPolicy.ExecutionAccelerators"

    gpu_execution_accelerator: Annotated[tuple[Accelerator, ...], Wire(1)] = ()
    cpu_execution_accelerator: Annotated[tuple[Accelerator, ...], Wire(2)] = ()


@message
class PinnedMemoryBuffer:
    """Whether copies between host and GPU go through page-locked host memory."""

    PROTO: ClassVar[str] = "ModelOptimizationPolicy.PinnedMemoryBuffer"

    enable: Annotated[bool, Wire(1)] = False


@message
class ModelOptimizationPolicy:
    """Settings for speed that a backend may follow.

    Copies of at least `gather_kernel_buffer_threshold` buffers are gathered on the GPU; `eager_batching` prepares a
    batch while the one before still runs.
    """

    graph: Annotated[OptimizationGraph | None, Wire(1)] = None
    priority: Annotated[ModelPriority, Wire(2)] = ModelPriority.PRIORITY_DEFAULT
    cuda: Annotated[OptimizationCuda | None, Wire(3)] = None
    execution_accelerators: Annotated[ExecutionAccelerators | None, Wire(4)] = None
    input_pinned_memory: Annotated[PinnedMemoryBuffer | None, Wire(5)] = None
    output_pinned_memory: Annotated[PinnedMemoryBuffer | None, Wire(6)] = None
    gather_kernel_buffer_threshold: Annotated[int, Wire(7, "uint32")] = 0
    eager_batching: Annotated[bool, Wire(8)] = False
