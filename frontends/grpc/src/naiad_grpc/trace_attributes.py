"""Attributes of traces over gRPC, by OpenTelemetry's semantic conventions.

See https://opentelemetry.io/docs/specs/semconv/rpc/grpc/.
"""

from naiad_grpc.messages import SERVICE
from naiad_grpc.statuses import Code
from naiad_kit.tracing import Attributes

_FAILURES = frozenset(
    (
        Code.UNKNOWN,
        Code.DEADLINE_EXCEEDED,
        Code.UNIMPLEMENTED,
        Code.INTERNAL,
        Code.UNAVAILABLE,
        Code.DATA_LOSS,
    )
)
"""The statuses that are errors of a server; the others are its callers'."""


def call_attributes(method: str) -> Attributes:
    """What is known of a request when its call begins."""
    return {"rpc.system.name": "grpc", "rpc.method": f"{SERVICE}/{method}"}


def status_attributes(code: Code) -> Attributes:
    """What the status of a call adds."""
    status = {"rpc.response.status_code": code.name}
    return {**status, "error.type": code.name} if code in _FAILURES else status
