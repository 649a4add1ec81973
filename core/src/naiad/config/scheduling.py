"""Queue policies, dynamic batching and ensembles.

Field names, numbers and types are those of `model_config.proto` of the Open Inference Protocol's Triton extensions.
"""

from collections.abc import Mapping
from dataclasses import field
from enum import IntEnum
from typing import Annotated, ClassVar

from naiad.config.fields import Wire, message


class TimeoutAction(IntEnum):
    """`ModelQueuePolicy.TimeoutAction`."""

    REJECT = 0
    DELAY = 1


@message
class ModelQueuePolicy:
    """`ModelQueuePolicy`."""

    timeout_action: Annotated[TimeoutAction, Wire(1)] = TimeoutAction.REJECT
    default_timeout_microseconds: Annotated[int, Wire(2, "uint64")] = 0
    allow_timeout_override: Annotated[bool, Wire(3)] = False
    max_queue_size: Annotated[int, Wire(4, "uint32")] = 0


@message
class ModelDynamicBatching:
    """`ModelDynamicBatching`."""

    preferred_batch_size: Annotated[tuple[int, ...], Wire(1, "int32")] = ()
    max_queue_delay_microseconds: Annotated[int, Wire(2, "uint64")] = 0
    preserve_ordering: Annotated[bool, Wire(3)] = False
    priority_levels: Annotated[int, Wire(4, "uint64")] = 0
    default_priority_level: Annotated[int, Wire(5, "uint64")] = 0
    default_queue_policy: Annotated[ModelQueuePolicy | None, Wire(6)] = None
    priority_queue_policy: Annotated[Mapping[int, ModelQueuePolicy], Wire(7, "uint64")] = field(default_factory=dict)


@message
class EnsembleStep:
    """`ModelEnsembling.Step`."""

    PROTO: ClassVar[str] = "ModelEnsembling.Step"

    model_name: Annotated[str, Wire(1)] = ""
    model_version: Annotated[int, Wire(2, "int64")] = 0
    input_map: Annotated[Mapping[str, str], Wire(3)] = field(default_factory=dict)
    output_map: Annotated[Mapping[str, str], Wire(4)] = field(default_factory=dict)
    model_namespace: Annotated[str, Wire(5)] = ""


@message
class ModelEnsembling:
    """`ModelEnsembling`."""

    step: Annotated[tuple[EnsembleStep, ...], Wire(1)] = ()
    max_inflight_requests: Annotated[int, Wire(2, "uint32")] = 0
