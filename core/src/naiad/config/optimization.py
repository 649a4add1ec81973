"""Optimisation settings that the backends read.

Field names, numbers and types are those of `model_config.proto` of the Open Inference Protocol's Triton extensions.
"""

from collections.abc import Mapping
from dataclasses import field
from enum import IntEnum
from typing import Annotated, ClassVar

from naiad.config.fields import Wire, message


class ModelPriority(IntEnum):
    """`ModelOptimizationPolicy.ModelPriority`."""

    PRIORITY_DEFAULT = 0
    PRIORITY_MAX = 1
    PRIORITY_MIN = 2


@message
class OptimizationGraph:
    """`ModelOptimizationPolicy.Graph`."""

    PROTO: ClassVar[str] = "ModelOptimizationPolicy.Graph"

    level: Annotated[int, Wire(1, "int32")] = 0


@message
class CudaGraphShape:
    """`ModelOptimizationPolicy.Cuda.GraphSpec.Shape`."""

    PROTO: ClassVar[str] = "ModelOptimizationPolicy.Cuda.GraphSpec.Shape"

    dim: Annotated[tuple[int, ...], Wire(1, "int64")] = ()


@message
class CudaGraphLowerBound:
    """`ModelOptimizationPolicy.Cuda.GraphSpec.LowerBound`."""

    PROTO: ClassVar[str] = "ModelOptimizationPolicy.Cuda.GraphSpec.LowerBound"

    batch_size: Annotated[int, Wire(1, "int32")] = 0
    input: Annotated[Mapping[str, CudaGraphShape], Wire(2)] = field(default_factory=dict)


@message
class CudaGraphSpec:
    """`ModelOptimizationPolicy.Cuda.GraphSpec`."""

    PROTO: ClassVar[str] = "ModelOptimizationPolicy.Cuda.GraphSpec"

    batch_size: Annotated[int, Wire(1, "int32")] = 0
    input: Annotated[Mapping[str, CudaGraphShape], Wire(2)] = field(default_factory=dict)
    graph_lower_bound: Annotated[CudaGraphLowerBound | None, Wire(3)] = None


@message
class OptimizationCuda:
    """`ModelOptimizationPolicy.Cuda`."""

    PROTO: ClassVar[str] = "ModelOptimizationPolicy.Cuda"

    graphs: Annotated[bool, Wire(1)] = False
    busy_wait_events: Annotated[bool, Wire(2)] = False
    graph_spec: Annotated[tuple[CudaGraphSpec, ...], Wire(3)] = ()
    output_copy_stream: Annotated[bool, Wire(4)] = False


@message
class Accelerator:
    """`ModelOptimizationPolicy.ExecutionAccelerators.Accelerator`."""

    PROTO: ClassVar[str] = "ModelOptimizationPolicy.ExecutionAccelerators.Accelerator"

    name: Annotated[str, Wire(1)] = ""
    parameters: Annotated[Mapping[str, str], Wire(2)] = field(default_factory=dict)


@message
class ExecutionAccelerators:
    """`ModelOptimizationPolicy.ExecutionAccelerators`."""

    PROTO: ClassVar[str] = "ModelOptimizationPolicy.ExecutionAccelerators"

    gpu_execution_accelerator: Annotated[tuple[Accelerator, ...], Wire(1)] = ()
    cpu_execution_accelerator: Annotated[tuple[Accelerator, ...], Wire(2)] = ()


@message
class PinnedMemoryBuffer:
    """`ModelOptimizationPolicy.PinnedMemoryBuffer`."""

    PROTO: ClassVar[str] = "ModelOptimizationPolicy.PinnedMemoryBuffer"

    enable: Annotated[bool, Wire(1)] = False


@message
class ModelOptimizationPolicy:
    """`ModelOptimizationPolicy`."""

    graph: Annotated[OptimizationGraph | None, Wire(1)] = None
    priority: Annotated[ModelPriority, Wire(2)] = ModelPriority.PRIORITY_DEFAULT
    cuda: Annotated[OptimizationCuda | None, Wire(3)] = None
    execution_accelerators: Annotated[ExecutionAccelerators | None, Wire(4)] = None
    input_pinned_memory: Annotated[PinnedMemoryBuffer | None, Wire(5)] = None
    output_pinned_memory: Annotated[PinnedMemoryBuffer | None, Wire(6)] = None
    gather_kernel_buffer_threshold: Annotated[int, Wire(7, "uint32")] = 0
    eager_batching: Annotated[bool, Wire(8)] = False
