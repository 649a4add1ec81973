"""One generate request on a connection: from what its call delivers to what the connection writes."""

from collections.abc import Callable
from typing import Protocol

from naiad_http.event_writer import EventWriter
from naiad_http.generate import EventStream, OneResponse
from naiad_http.statuses import Answer, Headers, Outcome


class Outlet(Protocol):
    """Where the outcomes of a generate request go. `over` says that its answer is complete."""

    over: bool

    def deliver(self, outcome: Outcome) -> None:
        """Take an outcome; those that come when all is over count for nothing."""
        ...


class WholeOutlet:
    """The outlet of `generate`: one answer, which `answer` writes; a success gets what `headers` gives too."""

    def __init__(self, one: OneResponse, answer: Callable[[Answer], None], headers: Callable[[], Headers]) -> None:
        self._one = one
        self._answer = answer
        self._headers = headers
        self.over = False

    def deliver(self, outcome: Outcome) -> None:
        """Answer when it is clear what."""
        if self.over:
            return
        answer = self._one.take(outcome)
        if answer is not None:
            self.over = True
            self._answer(with_headers(answer, self._headers))


class EventOutlet:
    """The outlet of `generate_stream`: events, or an answer where there is an error in front of all of them."""

    def __init__(self, stream: EventStream, writer: EventWriter, answer: Callable[[Answer], None]) -> None:
        self._stream = stream
        self._writer = writer
        self._answer = answer
        self.over = False

    def deliver(self, outcome: Outcome) -> None:
        """Write the event, and the end where this is it."""
        if self.over:
            return
        told = self._stream.take(outcome)
        self.over = self._stream.over
        if isinstance(told, Answer):
            self._answer(told)
        elif self.over:
            self._writer.end(told)
        else:
            self._writer.write(told)


def with_headers(answer: Answer, headers: Callable[[], Headers]) -> Answer:
    """The answer, with these headers where it is a success."""
    return Answer(answer.status, answer.body, answer.headers + headers()) if answer.status == 200 else answer
