"""Execution options as plain data, from the configuration to the executor."""

from collections.abc import Mapping
from dataclasses import dataclass

from naiad_config import ModelPriority
from naiad_tensorrt.description import Shape


@dataclass(frozen=True, slots=True)
class GraphSpec:
    """A CUDA graph to capture on one profile, for whole shapes of every input.

    It serves exactly these shapes, or all those from `lower` up, which are filled up with zeros. `values` are those of
    shape tensors, for which a graph never serves others.
    """

    profile: int
    shapes: Mapping[str, Shape]
    lower: Mapping[str, Shape]
    values: Mapping[str, Shape]


@dataclass(frozen=True, slots=True)
class ExecutionOptions:
    """What an executor prepares and how it works.

    `profiles` are those that it may be asked to run on, the first being that of most batches. `graphs` are captured
    when it is made. `busy_wait_events` waits for the device in a loop; `pinned_input` and `pinned_output` copy through
    page-locked memory; `output_copy_stream` copies outputs on a stream of their own; `priority` is that of the streams.
    `allocation_strategy` is TensorRT's name of it: `STATIC` or `ON_PROFILE_CHANGE`.
    """

    profiles: tuple[int, ...] = (0,)
    graphs: tuple[GraphSpec, ...] = ()
    busy_wait_events: bool = False
    pinned_input: bool = True
    pinned_output: bool = True
    output_copy_stream: bool = False
    priority: ModelPriority = ModelPriority.PRIORITY_DEFAULT
    allocation_strategy: str = "STATIC"
