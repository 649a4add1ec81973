"""The contract of a batch codec: turns dispatches into executions and answers into outcomes, as sequences need it.

A kind of scheduler brings one by the optional method `codec(context)` of its factory; others have plain batches.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from naiad.backend import Answer, Instance, Reply, Reschedule
from naiad.batch import Batch, Sender
from naiad.errors import NaiadError
from naiad.scheduler import Dispatch, Ticket
from naiad.server import Outcome
from naiad.types import Request, Response
from naiad_tensors.ragged import BatchLayout


class ReplyReader(Protocol):
    """Makes responses of the replies that a model sends one by one."""

    @property
    def model(self) -> str:
        """The name of the model."""

    @property
    def version(self) -> int:
        """The version of the model."""

    @property
    def decoupled(self) -> bool:
        """Whether the model answers a request with any number of responses."""

    def response(self, reply: Reply, request: Request, size: int) -> Response:
        """The response in that reply to a request of batch size `size`. Raises ModelFailedError."""


class ResponseBuilder(ReplyReader, Protocol):
    """Makes responses of an instance's answer and checks them against the configuration. For any thread."""

    @property
    def layout(self) -> BatchLayout | None:
        """Which tensors of a batch do not hold one row for each item, None where all do."""

    def read(self, answer: Answer, batch: Batch) -> Sequence[Outcome | None]:
        """One outcome per request, in order; None for a request that is answered through its sender.

        Raises ModelFailedError when the answer as a whole is invalid.
        """

    def read_rows(self, answer: Mapping[str, Any], batch: Batch, occupied: Sequence[bool]) -> Sequence[Outcome | None]:
        """As `read`, for a batch of one row a request: None for the rows that are not occupied.

        All outputs are brought to the host.
        """


class QueuedRequest(Protocol):
    """One request from its arrival to its last response, for a codec.

    `request` is the model's view of it, and may be replaced by a copy with more inputs. `codec_state` is the codec's,
    None at first. The codec sets it to None when it forgets the request: a cycle of references keeps tensors until the
    garbage collector runs.
    """

    request: Request
    codec_state: Any

    @property
    def ticket(self) -> Ticket:
        """Its ticket, a new one after each requeue."""

    @property
    def over(self) -> bool:
        """Whether no outcome is awaited any more."""

    @property
    def stream(self) -> object | None:
        """Its stream of responses, None where the model has not taken its sender, or has sent all."""


@dataclass(frozen=True, slots=True)
class Execution:
    """A batch for an instance, and the queued requests that are in it. A batch may have rows without a request."""

    requests: Sequence[QueuedRequest]
    batch: Batch


@dataclass(frozen=True, slots=True)
class Completion:
    """The requests of an execution that ended, with one outcome each; None leaves a request to its stream.

    `requeued` are the requests that were queued again.
    """

    requests: Sequence[QueuedRequest]
    outcomes: Sequence[Outcome | None]
    requeued: Sequence[QueuedRequest] = ()


class CodecQueue(Protocol):
    """The queue of a model version, for its codec. Every method but `sender` is for the event loop's thread."""

    @property
    def responses(self) -> ResponseBuilder:
        """Makes the responses of the model version."""

    def sender(self, request: QueuedRequest, slot: int, replies: ReplyReader) -> Sender:
        """The sender of a request that executes at that slot, whose replies `replies` reads. For any thread.

        Raises InternalError when it was taken before.
        """

    def requeue(self, request: QueuedRequest) -> NaiadError | None:
        """Queue an executed request again, with a ticket that continues its last one.

        Returns the error if the scheduler refuses it.
        """

    def instruct(self, slot: int, member: str, instruction: Callable[[Instance], None]) -> None:
        """Call that with the instance of the slot, on its thread, after its earlier executions.

        Does nothing if the instance lacks that optional member, or has died.
        """

    def recount(self) -> None:
        """`QueueCodec.open` may have become 0: a version that drains reads it again."""


class StickyRoutes(Protocol):
    """Keeps the requests of open sequences at a version that goes out of service."""

    @property
    def open(self) -> int:
        """How many sequences (or the like) expect further requests; a version is drained at 0."""

    def keeps(self, request: Request) -> bool:
        """Whether that request of this model must come here; False for one that starts a sequence anew."""


class QueueCodec(StickyRoutes, Protocol):
    """The codec of one queue, with its state. Every method is for the event loop's thread.

    An exception from a method that is called for a decision counts as the scheduler's.
    """

    @property
    def live(self) -> int:
        """How many sequences (or the like) live in instances."""

    def arrived(self, ticket: Ticket) -> None:
        """The scheduler has taken the ticket in."""

    def build(self, dispatch: Dispatch, requests: Sequence[QueuedRequest]) -> Sequence[Execution]:
        """The executions of these requests, one a ticket, which run one after the other.

        An empty result leaves the batch to the kernel. Raises RuntimeError for an invalid dispatch.
        """

    def completed(
        self, batch: Batch, outcomes: Sequence[Outcome | Reschedule | None], error: NaiadError | None
    ) -> Completion | None:
        """An execution ended with the outcomes of `BatchCodec.read`, or failed with an error.

        None keeps the outcomes as they are. An exception fails the requests of the execution.
        """

    def streamed(self, request: QueuedRequest, outcome: Outcome) -> None:
        """The last response of a request that is answered through its sender, or its error."""

    def withdrawn(self, request: QueuedRequest) -> None:
        """The request was cancelled or dropped while it waited."""

    def lost(self, slot: int) -> None:
        """The instance of that slot has died with its state."""

    def ended(self, ends: Sequence[Any]) -> None:
        """The scheduler has ended these sequences (`Decision.ended`)."""

    def end_all(self, unloading: bool) -> None:
        """End all sequences: the version is unloaded, or else a new scheduler replaces one that failed."""


class BatchCodec(Protocol):
    """Makes the batches of one model version, and reads their answers.

    `SchedulerFactory.codec(context)` makes it on a loader thread before the model is loaded; it may block.
    """

    def read(self, answer: Answer, batch: Batch, responses: ResponseBuilder) -> Sequence[Outcome | Reschedule | None]:
        """One outcome a request of the batch, in order. Called on the instance's thread.

        Raises ModelFailedError for an answer that is invalid as a whole.
        """

    def warmup_request(self, request: Request, index: int) -> Request:
        """The request of a warmup sample, the index-th from 1, with all inputs of the model."""

    def warmed_up(self, instance: Instance, requests: Sequence[Request]) -> None:
        """An instance has executed these requests of a warmup sample. Called on its thread."""

    def open(self, queue: CodecQueue) -> QueueCodec:
        """The codec of the version's queue. Called once, on the event loop's thread."""
