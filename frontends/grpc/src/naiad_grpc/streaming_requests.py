"""One request of a stream, and the responses that wait to be taken."""

from collections import deque
from collections.abc import Callable
from typing import Protocol

from naiad.buffers import Buffer
from naiad.byte_budget import UNCHARGED_BYTES, ByteBudget
from naiad.errors import NaiadError
from naiad.types import Request, Response
from naiad_grpc.codec import AnswerForm

Outcome = Response | NaiadError
Message = list[Buffer]


class Call(Protocol):
    """A request on its way through the server."""

    def cancel(self) -> None:
        """Say that nobody waits for the answer any more."""
        ...

    def pause(self) -> None:
        """Say that the caller reads slowly."""
        ...

    def resume(self) -> None:
        """Say that the caller has room again."""
        ...


class Asked:
    """One request of the stream; `size` are the bytes that it, or the `answer` that waits for others, takes.

    A request that is not `decoupled` has one answer, which waits for those of the requests before it. `charged` are the
    bytes that it holds of the server's byte budget. While a response of it is encoded on a thread, what follows is
    `behind`.
    """

    __slots__ = (
        "_hear",
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
        self, hear: "Callable[[Asked, Outcome], None]", request: Request, form: AnswerForm, size: int, decoupled: bool
    ) -> None:
        self._hear = hear
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
        """What the server has to say to the request."""
        self._hear(self, outcome)

    def waits(self) -> None:
        """A response to it waits to be taken."""
        self._unsent += 1
        if self.request.trace is not None:
            self.request.trace.record("GRPC_SEND_START")

    def sent(self) -> None:
        """A response to it was taken."""
        self._unsent -= 1
        if self.request.trace is not None:
            self.request.trace.record("GRPC_SEND_END")
            self._end_trace()

    def end(self) -> None:
        """It has all its responses."""
        self._over = True
        self.call = None  # the call refers to `deliver`: its tensors would wait for a garbage collection
        self._end_trace()

    def drop(self) -> None:
        """Nobody wants any more of its responses."""
        if self.call is not None:
            self.call.cancel()
        self._unsent = 0
        self.end()

    def _end_trace(self) -> None:
        if self._over and not self._unsent and self.request.trace is not None:
            self.request.trace.end()


class Ready:
    """The messages that wait to be taken, in order; `slow` says that they are too many, until half of that is left.

    Large ones are charged to the byte budget until the next one is taken: the last one is being written until then.
    """

    def __init__(self, most: int, most_bytes: int, budget: ByteBudget) -> None:
        self.slow = False
        self._most = most
        self._most_bytes = most_bytes
        self._messages: deque[tuple[int, Message, Asked]] = deque()
        self._size = 0
        self._budget = budget
        self._writing = 0

    def __bool__(self) -> bool:
        return bool(self._messages)

    def put(self, asked: Asked, message: Message) -> None:
        """A response to that request waits to be taken."""
        size = sum(map(len, message))
        self._messages.append((size, message, asked))
        self._size += size
        if size > UNCHARGED_BYTES:
            self._budget.add(size)
        self.slow = self.slow or len(self._messages) >= self._most or self._size >= self._most_bytes
        asked.waits()

    def take(self) -> Message:
        """The first message; there must be one."""
        size, message, asked = self._messages.popleft()
        self._size -= size
        self.written()
        if size > UNCHARGED_BYTES:
            self._writing = size
        if len(self._messages) <= self._most // 2 and self._size <= self._most_bytes // 2:
            self.slow = False
        asked.sent()
        return message

    def written(self) -> None:
        """The last message that was taken has been written."""
        if self._writing:
            self._budget.release(self._writing)
            self._writing = 0

    def drop(self) -> None:
        """Nobody takes the messages any more."""
        self.written()
        for size, _, asked in self._messages:
            if size > UNCHARGED_BYTES:
                self._budget.release(size)
            asked.drop()
        self._messages.clear()
        self.slow = False
