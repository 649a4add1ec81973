"""The contract of a scheduler: a deterministic object that gets tickets and returns decisions.

No clock, no loop, no thread, no chance, no tensors: the kernel drives it with the real clock, tests and the simulator
with a virtual one. Times are absolute seconds on whatever clock the driver uses.
"""

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Protocol, runtime_checkable

from naiad_config import ModelConfig


@dataclass(slots=True, eq=False)
class Ticket:
    """A queued request as a scheduler sees it; the driver numbers them upwards in the order of arrival.

    `shape_key` is equal for two requests whose tensors may share a batch. `priority` 0 is "none given";
    `timeout` is the caller's queue timeout in seconds (0: none). `sequence_id` 0 or "" is no sequence.
    """

    id: int
    arrival: float
    batch_size: int = 1
    shape_key: Hashable = None
    priority: int = 0
    timeout: float = 0.0
    sequence_id: int | str = 0
    sequence_start: bool = False
    sequence_end: bool = False
    continues: int = 0


class DropReason(StrEnum):
    """Why a scheduler refuses or gives up a ticket."""

    QUEUE_FULL = "queue full"
    TIMEOUT = "timeout"
    INVALID = "invalid"
    CANCELLED = "cancelled"
    """An earlier request of its sequence was taken back."""
    LOST = "lost"
    """The instance that its sequence ran on has died, and what the model knew of the sequence with it."""


@dataclass(frozen=True, slots=True)
class Drop:
    """These tickets get an error: `reason` gives its kind; `detail`, where there is one, its text."""

    tickets: tuple[int, ...]
    reason: DropReason
    detail: str = ""


@dataclass(slots=True)  # for the reason in `naiad.types`; never changed
class Dispatch:
    """These tickets go to that instance now, as one batch in this order; `reason` says why the batch closed.

    `rows` is for the batch codec: the layout of a batch of sequences (`naiad_kit.sequences.Row`), each of `tickets` in
    one row and in the same order.
    """

    instance: int
    tickets: tuple[int, ...]
    reason: str
    rows: tuple[Any, ...] = ()


@dataclass(slots=True)  # for the same reason; never changed
class Decision:
    """What to do now. `wake_at` is when to ask again if nothing else happens before (None: no need).

    `ended` is for the batch codec: sequences that are over without a last request (`naiad_kit.sequences.SequenceEnd`).
    """

    dispatches: tuple[Dispatch, ...] = ()
    drops: tuple[Drop, ...] = ()
    wake_at: float | None = None
    ended: tuple[Any, ...] = ()


NOTHING = Decision()
"""The decision to do nothing until something happens."""


class Scheduler(Protocol):
    """Decides which tickets run together, where and when.

    It may also have `preserves_ordering: bool`; True makes the kernel hold responses back until those of all earlier
    requests are out; `orders_dispatches: bool`, of those dispatched earlier; `backlog: int`, how many sequences wait
    for a slot; `lost(instance: int, now: float) -> None`: the instance has died, and may be idle again; decide then.
    """

    def arrive(self, ticket: Ticket) -> Drop | None:
        """Take a ticket in, or refuse it at once."""

    def settle(self, tickets: Sequence[int], now: float) -> bool | None:
        """These tickets are over: cancelled while they waited, or answered, with success or an error.

        A ticket that is answered through a sender is over with its final response, which may be long after its instance
        is free again. True asks for a decision, even though nothing else happens.
        """

    def decide(self, now: float, idle: Sequence[int]) -> Decision:
        """What to do at `now` with these idle instances. Total, and amortised O(1) in the length of the queue.

        An instance appears in at most one dispatch, and a dispatched or dropped ticket is never named again.
        """


@runtime_checkable
class SchedulerFactory(Protocol):
    """Makes the schedulers of one kind.

    `name` is what `parameters { key: "scheduler" }` of a configuration may ask for; `choice` is the member of
    `scheduling_choice` that asks for it otherwise (`dynamic_batching`), "" for none, the default scheduler.

    It may also have `codec(context: ModelContext) -> BatchCodec | None`, where its batches are more than requests that
    are joined (see `naiad.codec`), and `extensions: Sequence[str]`, the protocol extensions that a server has by it.
    """

    name: str
    choice: str

    def create(self, config: ModelConfig, instances: int) -> Scheduler:
        """A scheduler for one model version with that many instances, numbered from 0. Raises InvalidArgumentError."""
