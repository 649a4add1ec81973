"""Hook implementations of this plugin."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from naiad import hookimpl

if TYPE_CHECKING:
    from naiad.extend import GateFactory
    from naiad.options import Option, Settings


@hookimpl
def naiad_options() -> "Sequence[Option]":
    """Whether executions are limited, and how many units of each resource there are."""
    from naiad_rate_limiter.options import RATE_LIMIT_OPTIONS

    return RATE_LIMIT_OPTIONS


@hookimpl
def naiad_gates(settings: "Settings") -> "Sequence[GateFactory]":
    """The gates of the rate limiter, where it is on."""
    from naiad_rate_limiter.gates import gates_of

    return gates_of(settings)
