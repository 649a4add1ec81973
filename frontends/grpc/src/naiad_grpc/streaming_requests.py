"""Requests of a stream, and the queue of responses that wait to be taken."""

from collections import deque
from collections.abc import Callable
from typing import Protocol

from naiad.errors import NaiadError
from naiad.types import Request, Response
from naiad_grpc.codec import ResponseForm
from naiad_grpc.statuses import RpcError
from naiad_grpc.trace_attributes import status_attributes
from naiad_kit.buffers import Buffer
from naiad_kit.frontends.byte_budget import UNCHARGED_BYTES, ByteBudget
from naiad_kit.tracing import add_attributes

Outcome = Response | NaiadError
Message = list[Buffer]


class Call(Protocol):
    """A request on its way through the server."""

    def cancel(self) -> None:
        """Cancel the request: its caller no longer waits for the response."""
        ...

    def pause(self) -> None:
        """Hold the model back: the caller reads slowly."""
        ...

    def resume(self) -> None:
        """Let the model continue: the caller has caught up."""
        ...


def cancel(call: Call, request: Request) -> None:
    """Cancel a request, and end its trace."""
    call.cancel()
    if request.trace is not None:
        request.trace.end()


class StreamRequest:
    """One request of the stream; `size` is that of the request, or of its `answer` while that waits, in bytes.

    A request that is not `decoupled` has one answer, which waits for those of the requests before it. `charged` are its
    bytes in the server's byte budget. While one of its responses is encoded on a thread, the outcomes that follow are
    queued in `behind`.
    """

    __slots__ = (
        "_on_outcome",
        "_over",
        "_unsent",
        "answer",
        "behind",
        "call",
        "charged",
        "decoupled",
        "form",
        "request",
        "size",
    )

    def __init__(
        self,
        on_outcome: "Callable[[StreamRequest, Outcome], None]",
        request: Request,
        form: ResponseForm,
        size: int,
        decoupled: bool,
    ) -> None:
        self._on_outcome = on_outcome
        self.request = request
        self.form = form
        self.size = size
        self.charged = 0
        self.behind: deque[Outcome] | None = None
        self.decoupled = decoupled
        self.call: Call | None = None
        self.answer: Message | None = None
        self._unsent = 0
        self._over = False

    def deliver(self, outcome: Outcome) -> None:
        """Take an outcome of the request."""
        self._on_outcome(self, outcome)

    def pause(self) -> None:
        """Hold the model back, if it streams."""
        if self.decoupled and self.call is not None:
            self.call.pause()

    def resume(self) -> None:
        """Let the model continue, unless a response is being encoded."""
        if self.decoupled and self.call is not None and self.behind is None:
            self.call.resume()

    def queued(self, size: int) -> None:
        """A response of the request was queued, which has so many bytes."""
        self._unsent += 1
        if self.request.trace is not None:
            self.request.trace.record("GRPC_SEND_START")

    def sent(self) -> None:
        """A response of the request was taken."""
        self._unsent -= 1
        if self.request.trace is not None:
            self.request.trace.record("GRPC_SEND_END")
            self._end_trace()

    def failed(self, error: RpcError) -> None:
        """The request, or its stream with it, failed."""
        if self.request.trace is not None:
            add_attributes(self.request.trace, status_attributes(error.code))

    def end(self) -> None:
        """The request has all its responses."""
        self._over = True
        self.call = None  # the call refers to `deliver`: its tensors would wait for a garbage collection
        self._end_trace()

    def drop(self) -> None:
        """Cancel the request, unless it has all its responses, and forget those that are queued."""
        if self.call is not None:
            self.call.cancel()
        self._unsent = 0
        if self._over:
            self._end_trace()
        else:
            self.end()

    def _end_trace(self) -> None:
        if self._over and not self._unsent and self.request.trace is not None:
            self.request.trace.end()


class ReadyMessages:
    """Queue of the messages that wait to be taken; `slow` from the limit on, until it has fallen to half of it.

    Messages beyond UNCHARGED_BYTES are charged to the byte budget until the next one is taken: the last one is being
    written until then.
    """

    def __init__(self, most: int, most_bytes: int, budget: ByteBudget) -> None:
        self.slow = False
        self._most = most
        self._most_bytes = most_bytes
        self._messages: deque[tuple[int, int, Message, StreamRequest]] = deque()
        self._size = 0
        self._budget = budget
        self._writing = 0

    def __bool__(self) -> bool:
        return bool(self._messages)

    def put(self, stream_request: StreamRequest, message: Message) -> None:
        """Queue a response of that request."""
        size = sum(map(len, message))
        self._size += size
        charged = size if self._size > UNCHARGED_BYTES else 0
        self._messages.append((size, charged, message, stream_request))
        if charged:
            self._budget.add(charged)
        self.slow = self.slow or len(self._messages) >= self._most or self._size >= self._most_bytes
        stream_request.queued(size)

    def take(self) -> Message:
        """The first message; there must be one."""
        size, charged, message, stream_request = self._messages.popleft()
        self._size -= size
        self.written()
        self._writing = charged
        if len(self._messages) <= self._most // 2 and self._size <= self._most_bytes // 2:
            self.slow = False
        stream_request.sent()
        return message

    def written(self) -> None:
        """The message that was taken last has been written."""
        if self._writing:
            self._budget.release(self._writing)
            self._writing = 0

    def drop(self) -> None:
        """Discard all messages and cancel their requests."""
        self.written()
        for _, charged, _, stream_request in self._messages:
            self._budget.release(charged)
            stream_request.drop()
        self._messages.clear()
        self._size = 0
        self.slow = False
