"""Messages of queue policies, dynamic batching and ensembles.

Field names, numbers and types are those of `model_config.proto` of the Open Inference Protocol's Triton extensions.
"""

from collections.abc import Mapping
from dataclasses import field
from enum import IntEnum
from typing import Annotated, ClassVar

from naiad_config.fields import Wire, message


class TimeoutAction(IntEnum):
    """What happens to a request whose time in the queue is over: refused, or served after all that are in time."""

    REJECT = 0
    DELAY = 1


@message
class ModelQueuePolicy:
    """How long and how many requests may wait; 0 is without limit.

    `allow_timeout_override` lets a request shorten the timeout for itself, never lengthen it.
    """

    timeout_action: Annotated[TimeoutAction, Wire(1)] = TimeoutAction.REJECT
    default_timeout_microseconds: Annotated[int, Wire(2, "uint64")] = 0
    allow_timeout_override: Annotated[bool, Wire(3)] = False
    max_queue_size: Annotated[int, Wire(4, "uint32")] = 0


@message
class ModelDynamicBatching:
    """Join requests of different callers into batches.

    The oldest request is held back for at most `max_queue_delay_microseconds` to reach a preferred size. Priority
    levels count from 1, the highest; `priority_queue_policy` is by level. `preserve_ordering` keeps the responses in
    the order of the requests.
    """

    preferred_batch_size: Annotated[tuple[int, ...], Wire(1, "int32")] = ()
    max_queue_delay_microseconds: Annotated[int, Wire(2, "uint64")] = 0
    preserve_ordering: Annotated[bool, Wire(3)] = False
    priority_levels: Annotated[int, Wire(4, "uint64")] = 0
    default_priority_level: Annotated[int, Wire(5, "uint64")] = 0
    default_queue_policy: Annotated[ModelQueuePolicy | None, Wire(6)] = None
    priority_queue_policy: Annotated[Mapping[int, ModelQueuePolicy], Wire(7, "uint64")] = field(default_factory=dict)


@message
class EnsembleStep:
    """One model of an ensemble; the maps lead from its tensor names to the ensemble's, and version -1 is the latest."""

    PROTO: ClassVar[str] = "ModelEnsembling.Step"

    model_name: Annotated[str, Wire(1)] = ""
    model_version: Annotated[int, Wire(2, "int64")] = 0
    input_map: Annotated[Mapping[str, str], Wire(3)] = field(default_factory=dict)
    output_map: Annotated[Mapping[str, str], Wire(4)] = field(default_factory=dict)
    model_namespace: Annotated[str, Wire(5)] = ""


@message
class ModelEnsembling:
    """Models that answer together: steps joined by tensor names, in any order.

    At most `max_inflight_requests` wait or run at each step; 0 is without limit.
    """

    step: Annotated[tuple[EnsembleStep, ...], Wire(1)] = ()
    max_inflight_requests: Annotated[int, Wire(2, "uint32")] = 0
