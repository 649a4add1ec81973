"""What the URL and the HTTP headers say about a request to a model, before its body is read."""

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Envelope:
    """Which model is asked and how the body is laid out.

    `version` 0 is the server's choice. `header_length` is how many bytes of the body are JSON: None for all of them,
    0 for a raw request, whose whole body is the one tensor. `timeout` is the caller's time limit in seconds (None: no
    limit). `forwarded` are the HTTP headers that become parameters. `action` is the last word of the path:
    `infer`, `generate` or `generate_stream`. `traceparent` and `tracestate` are the caller's place in a trace, as W3C
    Trace Context has it. `load_format` is how the caller wants to be told of the server's load (`text`, `json`, "").
    """

    model_name: str
    version: int = 0
    header_length: int | None = None
    timeout: float | None = None
    forwarded: Mapping[str, str] = field(default_factory=dict)
    action: str = "infer"
    load_format: str = ""
    traceparent: str = ""
    tracestate: str = ""
