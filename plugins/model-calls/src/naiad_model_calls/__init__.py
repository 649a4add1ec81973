"""Hook implementations of this plugin."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from naiad import hookimpl

if TYPE_CHECKING:
    from naiad.extend import Service
    from naiad.options import Settings


@hookimpl
def naiad_services(settings: "Settings") -> "Sequence[Service]":
    """The service that carries calls from models to models."""
    from naiad_model_calls.service import ModelCallCarrier

    return [ModelCallCarrier()]
