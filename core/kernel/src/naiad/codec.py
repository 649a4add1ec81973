"""The contract of a batch codec: how tickets become executions, answers become outcomes, and what follows an execution.

A kind of scheduler brings one by the optional method `codec(context)` of its factory. A model version without one makes
plain batches, and calls nothing of this.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from naiad.backend import Answer, Instance, Reply, Reschedule
from naiad.batch import Batch, Sender
from naiad.errors import NaiadError
from naiad.ragged import BatchLayout
from naiad.scheduler import Dispatch, SequenceEnd, SequenceEndReason, Ticket
from naiad.server import Outcome
from naiad.types import Request, Response


class ReplyReader(Protocol):
    """Makes responses of the replies that a model sends one by one; the version's own `ResponseBuilder` is one."""

    @property
    def model(self) -> str:
        """The name of the model."""
        ...

    @property
    def version(self) -> int:
        """The version of the model."""
        ...

    @property
    def decoupled(self) -> bool:
        """Whether the model answers a request with any number of responses."""
        ...

    def response(self, reply: Reply, request: Request, size: int) -> Response:
        """The response in that reply to a request of batch size `size`. Raises ModelFailedError."""
        ...


class ResponseBuilder(ReplyReader, Protocol):
    """Makes responses of what an instance answered, held against the configuration. For any thread."""

    @property
    def layout(self) -> BatchLayout | None:
        """Which tensors of a batch do not hold one row for each item, None where all do."""
        ...

    def read(self, answer: Answer, batch: Batch) -> Sequence[Outcome | None]:
        """One outcome a request, in order; None for a request that is answered through its sender.

        Raises ModelFailedError when the answer as a whole is invalid.
        """
        ...

    def read_rows(self, answer: Mapping[str, Any], batch: Batch, occupied: Sequence[bool]) -> Sequence[Outcome | None]:
        """As `read`, for a batch of one row a request: None for the rows that are not occupied.

        All outputs are brought to the host.
        """
        ...


class QueuedRequest(Protocol):
    """One request from its arrival to its last response, as a codec sees it.

    `request` is what the model sees of it, and may be replaced by a copy with more inputs. `codec_state` belongs to the
    codec, and is None at first. The codec sets it to None when it knows the request no more: a cycle of references
    keeps tensors until the garbage collector runs.
    """

    request: Request
    codec_state: Any

    @property
    def ticket(self) -> Ticket:
        """Its ticket: another one after each requeue."""
        ...

    @property
    def over(self) -> bool:
        """Whether no outcome is awaited any more."""
        ...

    @property
    def stream(self) -> object | None:
        """Its stream of responses, None where the model has not taken its sender, or has sent all."""
        ...


@dataclass(frozen=True, slots=True)
class Execution:
    """A batch for an instance, and the queued requests that are in it. A batch may have rows without a request."""

    requests: Sequence[QueuedRequest]
    batch: Batch


@dataclass(frozen=True, slots=True)
class Completion:
    """What becomes of the requests of an execution that came back.

    `requests` are concluded with `outcomes`, one each; None leaves a request to its stream. `requeued` are those that
    were queued again.
    """

    requests: Sequence[QueuedRequest]
    outcomes: Sequence[Outcome | None]
    requeued: Sequence[QueuedRequest] = ()


class CodecQueue(Protocol):
    """The queue of a model version, as its codec sees it. Every method is for the event loop's thread but `sender`."""

    @property
    def responses(self) -> ResponseBuilder:
        """Makes the responses of the model version."""
        ...

    def sender(self, request: QueuedRequest, slot: int, replies: ReplyReader) -> Sender:
        """The sender of a request that executes at that slot; `replies` reads what it sends. For any thread.

        Raises InternalError when it was taken before.
        """
        ...

    def requeue(self, request: QueuedRequest) -> NaiadError | None:
        """Queue a request again that has come back, with a ticket that continues its last one.

        Returns the error where the scheduler refuses that.
        """
        ...

    def instruct(self, slot: int, member: str, instruction: Callable[[Instance], None]) -> None:
        """Call that with the instance of the slot, on its own thread, after the executions that it was given before.

        Nothing happens where the instance lacks that (optional) member, or is gone.
        """
        ...

    def recount(self) -> None:
        """Say that `QueueCodec.open` may have become 0: a version that drains looks at it again."""
        ...


class StickyRoutes(Protocol):
    """What keeps requests at a version that goes out of service, while what they carry on is under way there."""

    @property
    def open(self) -> int:
        """How many sequences (or the like) further requests may carry on; a version with any is not drained."""
        ...

    def keeps(self, request: Request) -> bool:
        """Whether that request of this model must come here. One that starts anew need not, nor need its successors."""
        ...


class QueueCodec(StickyRoutes, Protocol):
    """The codec of one queue, with what is under way in it. Every method is for the event loop's thread.

    Whatever it raises while the scheduler is asked counts as the scheduler's failure.
    """

    @property
    def live(self) -> int:
        """How many sequences (or the like) instances know of."""
        ...

    def arrived(self, ticket: Ticket) -> None:
        """The scheduler has taken the ticket in."""
        ...

    def build(self, dispatch: Dispatch, requests: Sequence[QueuedRequest]) -> Sequence[Execution]:
        """The executions of these requests, one a ticket: each goes to the instance when the one before came back.

        None at all leaves the batch to the kernel. Raises RuntimeError when the dispatch is invalid.
        """
        ...

    def completed(
        self, batch: Batch, outcomes: Sequence[Outcome | Reschedule | None], error: NaiadError | None
    ) -> Completion | None:
        """An execution came back, with the outcomes that `BatchCodec.read` made, or failed with an error.

        None leaves its outcomes as they are, which is what becomes of a batch of the kernel's own. Should it raise, the
        requests of the execution fail.
        """
        ...

    def streamed(self, request: QueuedRequest, outcome: Outcome) -> None:
        """This is the last response of a request that is answered through its sender, or its error."""
        ...

    def withdrawn(self, request: QueuedRequest) -> None:
        """The request was given up while it waited."""
        ...

    def lost(self, slot: int) -> None:
        """The instance of that slot has died, with all that it remembered."""
        ...

    def ended(self, ends: Sequence[SequenceEnd]) -> None:
        """The scheduler has decided that these sequences are over."""
        ...

    def end_all(self, reason: SequenceEndReason) -> None:
        """Everything is over: the version goes out of service, or its scheduler failed and a new one starts."""
        ...


class BatchCodec(Protocol):
    """How the requests of one model version are put into batches, and how the answers are read.

    A kind of scheduler brings it: its factory has a method `codec(context)`, which is called on a loader thread before
    the model is loaded, may block, and returns a codec or None. `requeues` says that an execution may queue a request
    again.
    """

    @property
    def requeues(self) -> bool:
        """Whether requests may be queued again."""
        ...

    def read(self, answer: Answer, batch: Batch, responses: ResponseBuilder) -> Sequence[Outcome | Reschedule | None]:
        """One outcome a request of the batch, in order; called on the instance's thread.

        Raises ModelFailedError when the answer as a whole is invalid.
        """
        ...

    def warmup_request(self, request: Request, index: int) -> Request:
        """The request of a warmup sample, the index-th from 1 on, with all inputs that the model takes."""
        ...

    def warmed_up(self, instance: Instance, requests: Sequence[Request]) -> None:
        """An instance has executed these requests of a warmup sample; called on its own thread."""
        ...

    def open(self, queue: CodecQueue) -> QueueCodec:
        """The codec of the version's queue. Called once, on the event loop's thread."""
        ...
