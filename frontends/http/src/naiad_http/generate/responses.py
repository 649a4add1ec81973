"""Encoder of generate responses: the outcomes of a call to one JSON document, or to a stream of events.

The format of the stream is that of server-sent events (HTML standard, section 9.2): each event is a line `data: ` with
a JSON object, and an empty line. The last event is not marked.
"""

from dataclasses import replace
from functools import partial

from naiad.errors import InvalidArgumentError, NaiadError
from naiad.types import Response
from naiad_http.codec.responses import MAX_JSON_OUTPUT, LargeOutput
from naiad_http.generate.documents import document_of
from naiad_http.statuses import HttpResponse, Outcome, error_response, unexpected
from naiad_http.wire import EVENT_HEADERS
from naiad_kit.explaining import EXPLAIN, encoded_twice, is_only_explained

_JSON = (("Content-Type", "application/json"),)
_EVENT = b"data: %b\n\n"


class OneResponse:
    """The HTTP response of `generate`, which needs exactly one response of the model. Errors have the `request_id`.

    An output takes at most `max_json_output` bytes of JSON.
    """

    def __init__(self, request_id: str = "", max_json_output: int = MAX_JSON_OUTPUT) -> None:
        self._request_id = request_id
        self._limit = max_json_output
        self._body: bytes | None = None
        self._response: Response | None = None

    def take(self, outcome: Outcome, on_thread: bool = False) -> HttpResponse | None:
        """Take an outcome; the HTTP response once it is complete. Nothing may be taken after that.

        Raises LargeOutput, unless it runs `on_thread`, for an outcome that takes many milliseconds; take it there.
        """
        if isinstance(outcome, NaiadError):
            return error_response(outcome, self._request_id)
        if is_only_explained(outcome):
            if self._response is None:
                return self._wrong_number("none")
            outcome = replace(
                self._response, parameters={**self._response.parameters, **outcome.parameters}, final=True
            )
            self._body = None
        if not outcome.is_empty:
            if self._body is not None and outcome.error is None:
                return self._wrong_number("more than one")
            encoded = _encoded(outcome, self._request_id, self._limit, on_thread)
            if isinstance(encoded, HttpResponse):
                return encoded
            self._body, self._response = encoded, outcome
        if not outcome.final:
            return None
        return self._wrong_number("none") if self._body is None else HttpResponse(200, self._body, _JSON)

    def _wrong_number(self, sent: str) -> HttpResponse:
        reason = (
            "generate expects model to produce exactly 1 response, use generate stream for model that generates "
            f"various number of responses; it sent {sent}"
        )
        return error_response(InvalidArgumentError(reason), self._request_id)


class EventStream:
    """The event stream of `generate_stream`: an event for each response of the model. It is `over` after the last.

    An error ends it. Errors have the `request_id`. An output takes at most `max_json_output` bytes of JSON.
    """

    def __init__(self, request_id: str = "", max_json_output: int = MAX_JSON_OUTPUT) -> None:
        self._request_id = request_id
        self._limit = max_json_output
        self._begun = False
        self.over = False

    def take(self, outcome: Outcome, on_thread: bool = False) -> bytes | HttpResponse:
        """The event of an outcome, b"" for none.

        If the first outcome is an error, an HttpResponse with its status, whose body is the one event of the stream.
        Nothing may be taken when the stream is over. Raises LargeOutput, unless it runs `on_thread`, for an outcome
        that takes many milliseconds; take it there.
        """
        if isinstance(outcome, NaiadError):
            return self._failed(error_response(outcome, self._request_id))
        self.over = outcome.final
        if outcome.final and outcome.is_empty:  # most are not final, and need no call of the property
            return b""
        encoded = _encoded(outcome, self._request_id, self._limit, on_thread)
        if isinstance(encoded, HttpResponse):
            return self._failed(encoded)
        self._begun = True
        return _EVENT % encoded

    def _failed(self, response: HttpResponse) -> bytes | HttpResponse:
        self.over = True
        event = _EVENT % response.body
        if self._begun:
            return event
        others = tuple(header for header in response.headers if header[0] != "Content-Type")
        return HttpResponse(response.status, event, EVENT_HEADERS + others)


def _encoded(response: Response, request_id: str, limit: int, on_thread: bool) -> bytes | HttpResponse:
    """The JSON of a response, or the HTTP response to its error or to an error of encoding."""
    if response.error is not None:
        return error_response(response.error, request_id)
    try:
        if response.parameters and EXPLAIN in response.parameters:
            return encoded_twice(response, partial(document_of, response, limit, on_thread))
        return document_of(response, limit, on_thread)
    except LargeOutput:
        raise
    except NaiadError as error:
        return error_response(error, request_id)
    except Exception as error:  # noqa: BLE001 - the caller must get a response whatever a model put into its outputs
        return unexpected(error, request_id)
