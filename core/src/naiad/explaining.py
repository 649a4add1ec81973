"""Requests that ask for their own timeline, and what frontends have to do about it.

A request with the parameter `explain` gets it as JSON text in the response parameter of the same name; what it holds is
in docs/explain.md. The kernel takes the parameter away before the model sees the request.
"""

import json
from collections.abc import Mapping

from naiad.types import ParameterValue, Response

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


def add_encoding(response: Response, seconds: float) -> None:
    """Add to the explanation in a response that its encoding took so long; nothing where there is none.

    A frontend that was asked for an explanation encodes twice: how long it took must be in what it encodes.
    """
    try:
        told = json.loads(str(response.parameters[EXPLAIN]))
        told["encoded"] = round(told["answered"] + seconds * 1e6, 1)
    except (KeyError, TypeError, ValueError):
        return  # a model may have a parameter of that name itself, where explanations are not allowed
    response.parameters = {**response.parameters, EXPLAIN: as_text(told)}


def as_text(told: Mapping[str, object]) -> str:
    """An explanation as it stands in a parameter."""
    return json.dumps(told, separators=(",", ":"))
