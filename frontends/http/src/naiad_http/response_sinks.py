"""Response sinks of generate requests: they receive the outcomes of a call and write them to its connection."""

from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable
from functools import partial
from typing import Any, Generic, Protocol, TypeVar

from naiad.errors import InternalError, NaiadError
from naiad_http.codec.responses import LargeOutput
from naiad_http.event_writer import EventWriter
from naiad_http.generate import EventStream, OneResponse
from naiad_http.statuses import Headers, HttpResponse, Outcome
from naiad_kit.frontends.codec_threads import CodecJob

_Encoded = TypeVar("_Encoded")

Submit = Callable[[Callable[[], Any], Callable[[Any], None]], CodecJob[Any]]
"""Runs the first function on a codec thread and calls the second with its result, unless the job is cancelled."""


Take = Callable[[Outcome, bool], _Encoded]
"""The encoded form of an outcome. Raises LargeOutput, unless the second argument says that it runs on a thread."""


class TakesOutcomes(Protocol):
    """Receiver of the outcomes of a call."""

    def deliver(self, outcome: Outcome) -> None:
        """Take an outcome; outcomes after the end are ignored."""


class ResponseSink(ABC, Generic[_Encoded]):
    """Receives the outcomes of a generate request. It is `over` when its HTTP response is complete.

    A large response is encoded on a thread; outcomes that arrive meanwhile are queued. `submit` holds the model back
    until the job is finished or cancelled.
    """

    def __init__(self, take: Take[_Encoded], submit: Submit) -> None:
        self._take = take
        self._submit = submit
        self._encoding: CodecJob[_Encoded] | None = None
        self._later: deque[Outcome] = deque()
        self.over = False

    def deliver(self, outcome: Outcome) -> None:
        """Take an outcome; outcomes after the end are ignored."""
        if self.over:
            return
        if self._encoding is not None and not self._encoding.cancelled:
            self._later.append(outcome)
        else:
            self._encode(outcome)

    def _encode(self, outcome: Outcome) -> None:
        try:
            encoded = self._take(outcome, False)
        except LargeOutput:
            self._encoding = self._submit(partial(self._take, outcome, True), self._on_encoded)
        else:
            self._write(encoded)

    def _on_encoded(self, encoded: _Encoded | BaseException) -> None:
        """Write what a thread has encoded, and take the outcomes that were queued meanwhile."""
        if isinstance(encoded, NaiadError):  # as of threads, none of which could be started
            self._encode(encoded)
        elif isinstance(encoded, BaseException):  # no encoder may raise these; SystemExit of a model's object for one
            self._encode(InternalError(f"{type(encoded).__name__} while the answer was encoded"))
        else:
            self._write(encoded)
        self._encoding = None
        while self._later and not self.over and self._encoding is None:
            self._encode(self._later.popleft())

    @abstractmethod
    def _write(self, encoded: _Encoded) -> None:
        """Write an encoded outcome, and set `over` if it is the last."""


class SingleResponseSink(ResponseSink[HttpResponse | None]):
    """The sink of `generate`: one response, which `respond` writes; a success also gets the headers of `headers()`."""

    def __init__(
        self, one: OneResponse, respond: Callable[[HttpResponse], None], headers: Callable[[], Headers], submit: Submit
    ) -> None:
        super().__init__(one.take, submit)
        self._respond = respond
        self._headers = headers

    def _write(self, encoded: HttpResponse | None) -> None:
        if encoded is not None:
            self.over = True
            self._respond(with_headers(encoded, self._headers))


class EventSink(ResponseSink[bytes | HttpResponse]):
    """The sink of `generate_stream`: events, or one whole response if the first event is an error."""

    def __init__(
        self, stream: EventStream, writer: EventWriter, respond: Callable[[HttpResponse], None], submit: Submit
    ) -> None:
        super().__init__(stream.take, submit)
        self._stream = stream
        self._writer = writer
        self._respond = respond

    @property
    def sent(self) -> int:
        """The bytes of events that were written."""
        return self._writer.sent

    def _write(self, encoded: bytes | HttpResponse) -> None:
        self.over = self._stream.over
        if isinstance(encoded, HttpResponse):
            self._respond(encoded)
        elif self.over:
            self._writer.end(encoded)
        else:
            self._writer.write(encoded)


def with_headers(response: HttpResponse, headers: Callable[[], Headers]) -> HttpResponse:
    """The response, with these headers if it is a success."""
    if response.status != 200:
        return response
    return HttpResponse(response.status, response.body, response.headers + headers())
