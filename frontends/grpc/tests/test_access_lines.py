"""Lines of the access log: the status of a call that is cancelled."""

from dataclasses import dataclass
from time import monotonic_ns
from typing import Any

import pytest

from naiad.types import Request
from naiad_grpc.access_lines import Line, Lines
from naiad_kit.access_log import AccessLog


@dataclass
class Context:
    """The context of a call with so many seconds left, None without a deadline."""

    remaining: float | None

    def time_remaining(self) -> float | None:
        return self.remaining

    def invocation_metadata(self) -> Any:
        return ()


@pytest.mark.parametrize(
    ("elapsed", "remaining", "status"),
    [
        (0.3, None, "CANCELLED"),
        (0.3, 0.2, "CANCELLED"),
        (0.3, 0.0, "DEADLINE_EXCEEDED"),
        (0.3, -1.0, "DEADLINE_EXCEEDED"),
        (0.3, 0.04, "DEADLINE_EXCEEDED"),  # the client's clock began earlier
        (150.0, 0.9, "DEADLINE_EXCEEDED"),  # and clients round what is left up, to whole seconds for long calls
        (150.0, 2.0, "CANCELLED"),
    ],
)
def test_a_call_that_is_cancelled_at_its_deadline_is_late(elapsed: float, remaining: float, status: str) -> None:
    lines = Lines(AccessLog("text", lambda _: None))
    request = Request("m", {}, received_ns=monotonic_ns() - int(elapsed * 1e9))
    line = Line(lines, Context(remaining), "ModelInfer", 0, request)

    assert line.cancellation() == status
