"""Head of a request to a model: what its URL and HTTP headers say, before its body is read."""

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class RequestHead:
    """The model of the request and the layout of its body.

    `version` 0 is the server's choice. `header_length` is the length of the JSON part of the body in bytes: None for
    all of it, 0 for a raw request, whose whole body is the one tensor. `timeout` is the caller's time limit in seconds
    (None: no limit). `forwarded` are the HTTP headers that become parameters. `action` is the last word of the path:
    `infer`, `generate` or `generate_stream`. `traceparent` and `tracestate` are the caller's trace context (W3C Trace
    Context). `load_format` is the format of the load report that the caller requests (`text`, `json`, "").
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
