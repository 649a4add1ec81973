"""One generate request on a connection: from what its call delivers to what the connection writes."""

from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable
from functools import partial
from typing import Any, Generic, TypeVar

from naiad.errors import InternalError
from naiad_http.codec.responses import LargeOutput
from naiad_http.event_writer import EventWriter
from naiad_http.generate import EventStream, OneResponse
from naiad_http.statuses import Answer, Headers, Outcome
from naiad_kit.frontends.codec_threads import CodecJob

_Taken = TypeVar("_Taken")

Submit = Callable[[Callable[[], Any], Callable[[Any], None]], CodecJob[Any]]
"""Runs the first function on a codec thread and calls the second with its result, unless the job is cancelled."""


class Outlet(ABC, Generic[_Taken]):
    """Where the outcomes of a generate request go. `over` says that its answer is complete.

    A large response is encoded on a thread; those that come meanwhile wait for it. `submit` holds the model back until
    the job is over or cancelled.
    """

    def __init__(self, submit: Submit) -> None:
        self._submit = submit
        self._encoding: CodecJob[_Taken] | None = None
        self._later: deque[Outcome] = deque()
        self.over = False

    def deliver(self, outcome: Outcome) -> None:
        """Take an outcome; those that come when all is over count for nothing."""
        if self.over:
            return
        if self._encoding is not None and not self._encoding.cancelled:
            self._later.append(outcome)
        else:
            self._encode(outcome)

    def _encode(self, outcome: Outcome) -> None:
        try:
            taken = self._take(outcome, False)
        except LargeOutput:
            self._encoding = self._submit(partial(self._take, outcome, True), self._encoded)
        else:
            self._write(taken)

    def _encoded(self, taken: _Taken | BaseException) -> None:
        """Write what a thread has encoded, and take what came meanwhile."""
        if isinstance(taken, BaseException):  # what no encoder may raise, such as SystemExit of a model's object
            self._encode(InternalError(f"{type(taken).__name__} while the answer was encoded"))
        else:
            self._write(taken)
        self._encoding = None
        while self._later and not self.over and self._encoding is None:
            self._encode(self._later.popleft())

    @abstractmethod
    def _take(self, outcome: Outcome, on_thread: bool) -> _Taken:
        """What to write for an outcome. Raises LargeOutput, unless it runs `on_thread`."""

    @abstractmethod
    def _write(self, taken: _Taken) -> None:
        """Write it, and set `over` where that is the end."""


class WholeOutlet(Outlet[Answer | None]):
    """The outlet of `generate`: one answer, which `answer` writes; a success gets what `headers` gives too."""

    def __init__(
        self, one: OneResponse, answer: Callable[[Answer], None], headers: Callable[[], Headers], submit: Submit
    ) -> None:
        super().__init__(submit)
        self._one = one
        self._answer = answer
        self._headers = headers

    def _take(self, outcome: Outcome, on_thread: bool) -> Answer | None:
        return self._one.take(outcome, on_thread)

    def _write(self, taken: Answer | None) -> None:
        if taken is not None:
            self.over = True
            self._answer(with_headers(taken, self._headers))


class EventOutlet(Outlet[bytes | Answer]):
    """The outlet of `generate_stream`: events, or an answer where there is an error in front of all of them."""

    def __init__(
        self, stream: EventStream, writer: EventWriter, answer: Callable[[Answer], None], submit: Submit
    ) -> None:
        super().__init__(submit)
        self._stream = stream
        self._writer = writer
        self._answer = answer

    def _take(self, outcome: Outcome, on_thread: bool) -> bytes | Answer:
        return self._stream.take(outcome, on_thread)

    def _write(self, taken: bytes | Answer) -> None:
        self.over = self._stream.over
        if isinstance(taken, Answer):
            self._answer(taken)
        elif self.over:
            self._writer.end(taken)
        else:
            self._writer.write(taken)


def with_headers(answer: Answer, headers: Callable[[], Headers]) -> Answer:
    """The answer, with these headers where it is a success."""
    return Answer(answer.status, answer.body, answer.headers + headers()) if answer.status == 200 else answer
