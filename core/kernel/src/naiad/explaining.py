"""Requests that ask for their own timeline, and what frontends have to do about it.

A request with the parameter `explain` gets it as JSON text in the response parameter of the same name; what it holds is
in docs/explain.md. The kernel takes a parameter that asks away before the model sees the request.
"""

import json
from collections.abc import Callable, Mapping
from time import perf_counter
from typing import TypeVar

from naiad.types import ParameterValue, Response

_T = TypeVar("_T")

EXPLAIN = "explain"
"""The name of the parameter, of requests and of responses."""

EXPLAIN_HEADER = "naiad-explain"
"""The HTTP header, and the key of gRPC metadata, that is as good as the parameter; `1` asks for it."""


def is_asked(value: object) -> bool:
    """Whether that value of the parameter or header asks for an explanation: true, 1, or these as text."""
    return value in (True, "1") or (isinstance(value, str) and value.lower() == "true")


def asks(parameters: Mapping[str, ParameterValue]) -> bool:
    """Whether a request with these parameters asks for an explanation."""
    return bool(parameters) and EXPLAIN in parameters and is_asked(parameters[EXPLAIN])


def encoded_twice(response: Response, encode: Callable[[], _T]) -> _T:
    """What `encode` gives for a response with an explanation, called twice: what the first call took is told in it.

    A frontend calls it for responses that have a parameter `explain`.
    """
    started = perf_counter()
    encode()
    add_encoding(response, perf_counter() - started)
    return encode()


def add_encoding(response: Response, seconds: float) -> None:
    """Add to the explanation in a response that its encoding took so long; nothing where there is none."""
    try:
        told = json.loads(str(response.parameters[EXPLAIN]))
        told["encoded"] = round(told["answered"] + seconds * 1e6, 1)
    except (KeyError, TypeError, ValueError):
        return  # a model may give a parameter of that name itself
    response.parameters = {**response.parameters, EXPLAIN: as_text(told)}


def is_only_explained(response: Response) -> bool:
    """Whether a response says nothing but the explanation: the model ended without a further one."""
    return response.final and not response.outputs and response.error is None and list(response.parameters) == [EXPLAIN]


def as_text(told: Mapping[str, object]) -> str:
    """An explanation as it stands in a parameter."""
    return json.dumps(told, separators=(",", ":"))
