"""Explain protocol: the request parameter `naiad_explain`, and the response parameter with the timeline as JSON.

docs/explain.md describes the timeline. The stage of naiad-explain removes the parameter before the model gets the
request.
"""

import json
from collections.abc import Callable, Mapping
from time import perf_counter
from typing import TypeVar

from naiad.extend import requests_stage
from naiad.types import ParameterValue, Response

_T = TypeVar("_T")

EXPLAIN = "naiad_explain"
"""The name of the parameter, of requests and of responses. Names with `naiad_` in front are reserved for the server."""

EXPLAIN_HEADER = "naiad-explain"
"""The HTTP header, and the key of gRPC metadata, with the meaning of the parameter; `1` asks for a timeline."""


def asks(parameters: Mapping[str, ParameterValue]) -> bool:
    """Whether a request with these parameters asks for its timeline."""
    return bool(parameters) and EXPLAIN in parameters and requests_stage(parameters[EXPLAIN])


def encoded_twice(response: Response, encode: Callable[[], _T]) -> _T:
    """The result of `encode` for a response with a timeline, called twice: the timeline has how long the first took.

    A frontend calls this for responses that have this parameter.
    """
    started = perf_counter()
    encode()
    add_encoding(response, perf_counter() - started)
    return encode()


def add_encoding(response: Response, seconds: float) -> None:
    """Add the duration of the encoding to the timeline in a response; a response without one stays as it is."""
    try:
        timeline = json.loads(str(response.parameters[EXPLAIN]))
        timeline["encoded"] = round(timeline["answered"] + seconds * 1e6, 1)
    except (KeyError, TypeError, ValueError):
        return  # a parameter of the model's own with that name
    response.parameters = {**response.parameters, EXPLAIN: as_text(timeline)}


def is_only_explained(response: Response) -> bool:
    """Whether a response holds a timeline and nothing else: the model ended without a further response."""
    return response.final and not response.outputs and response.error is None and list(response.parameters) == [EXPLAIN]


def as_text(timeline: Mapping[str, object]) -> str:
    """The text of a timeline in a parameter."""
    return json.dumps(timeline, separators=(",", ":"))
