"""Lines of the access log as text and as JSON. What requests have in common is formatted once."""

from collections.abc import Callable, Hashable
from dataclasses import dataclass
from functools import lru_cache
from time import gmtime, strftime
from typing import Any

from naiad_kit.quoting import quoted

_TRACE_ID = slice(3, 35)
"""Where a `traceparent` has the trace id."""

_REASONS = 64
"""The most reasons to close a batch that are kept as text; schedulers have a handful."""


@dataclass(frozen=True, slots=True)
class Form:
    """How a line is formatted: time, subject, microseconds in all, `queue`, those in the queue, end, trace.

    `time` is the text before the time; `milliseconds` has its last digits and the text after it, for each of a second;
    `queue` is the text between the two numbers. `caller` formats the peer, the protocol, the operation (method and
    path, or the name of the RPC), the model ("" for none) and its version (0 for none). `subject` adds to that the id
    ("" for none), the status (a number over HTTP, a name over gRPC), and the bytes of the request and the answer. `end`
    formats the microseconds of compute and the batch, `trace` the trace id in a header `traceparent` (W3C Trace
    Context), "" for none.
    """

    time: str
    milliseconds: tuple[str, ...]
    queue: str
    caller: Callable[[str, str, str, str, int], str]
    subject: Callable[[str, str, int | str, int, int], str]
    end: Callable[[int, tuple[Any, ...]], str]
    trace: Callable[[str], str]


def utc(seconds: int) -> str:
    """The time so many seconds after the epoch, as ISO 8601 has it, without a time zone."""
    return strftime("%Y-%m-%dT%H:%M:%S", gmtime(seconds))


def _text_caller(peer: str, protocol: str, operation: str, model: str, version: int) -> str:
    return f"{_word(peer)} {protocol} {_word(operation)} model={_word(model)} version={version or '-'}"


def _text_subject(caller: str, name: str, status: int | str, received: int, sent: int) -> str:
    return f"{caller} id={_word(name)} status={status} received={received} sent={sent} total_us="


def _text_end(compute_us: int, batch: tuple[Any, ...]) -> str:
    size, reason = batch or ("-", "")
    return f" compute_us={compute_us} batch={size} closed={_reason_as_text(reason)} trace="


def _text_trace(traceparent: str) -> str:
    return f"{_word(traceparent[_TRACE_ID])}\n"


def _json_caller(peer: str, protocol: str, operation: str, model: str, version: int) -> str:
    texts = map(quoted, (peer, protocol, operation))
    return '"peer":{},"protocol":{},"operation":{},"model":{},"version":{}'.format(
        *texts, _text_or_null(model), version or "null"
    )


def _json_subject(caller: str, name: str, status: int | str, received: int, sent: int) -> str:
    shown = status if type(status) is int else quoted(str(status))
    return (
        f'{caller},"id":{_text_or_null(name)},"status":{shown},"received_bytes":{received},"sent_bytes":{sent},'
        '"total_us":'
    )


def _json_end(compute_us: int, batch: tuple[Any, ...]) -> str:
    size, reason = batch or ("null", "")
    return f',"compute_us":{compute_us},"batch_size":{size},"closed":{_reason_as_json(reason)},"trace_id":'


def _json_trace(traceparent: str) -> str:
    return f"{_text_or_null(traceparent[_TRACE_ID])}}}\n"


def _text_or_null(text: str) -> str:
    return quoted(text) if text else "null"


def _word(text: str) -> str:
    """The text, in quotes unless it is one printable word, so that a client cannot forge a line; "-" for none."""
    if text.isalnum():
        return text
    if text.isprintable() and not any(sign in text for sign in ' "=\\'):
        return text or "-"
    return quoted(text)


@lru_cache(_REASONS)
def _reason_as_text(reason: Hashable) -> str:
    return _word(str(reason))


@lru_cache(_REASONS)
def _reason_as_json(reason: Hashable) -> str:
    return _text_or_null(str(reason))


def _milliseconds(after: str) -> tuple[str, ...]:
    return tuple(f".{number:03d}Z{after}" for number in range(1000))


FORMS = {
    "text": Form("", _milliseconds(" "), " queue_us=", _text_caller, _text_subject, _text_end, _text_trace),
    "json": Form('{"time":"', _milliseconds('",'), ',"queue_us":', _json_caller, _json_subject, _json_end, _json_trace),
}
