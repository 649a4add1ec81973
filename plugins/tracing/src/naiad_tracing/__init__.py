"""Hook implementations of this plugin."""

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING

from naiad import hookimpl

if TYPE_CHECKING:
    from naiad.extend import Service
    from naiad.options import Option, Settings


@hookimpl
def naiad_options() -> "Sequence[Option]":
    """The options of tracing."""
    from naiad_tracing.options import TRACE_OPTIONS

    return TRACE_OPTIONS


@hookimpl
def naiad_services(settings: "Settings") -> "Sequence[Service]":
    """The tracer."""
    from naiad_tracing.options import read_options
    from naiad_tracing.tracer import Tracer

    return [Tracer(read_options(settings, os.environ))]
