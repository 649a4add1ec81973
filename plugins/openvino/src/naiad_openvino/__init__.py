"""Hook implementations of this plugin."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from naiad import hookimpl

if TYPE_CHECKING:
    from naiad.backend import Backend


@hookimpl
def naiad_backends() -> "Sequence[Backend]":
    """The backend `openvino`: models in OpenVINO's own format, and others that it reads."""
    from naiad_openvino.backend import OpenVinoBackend

    return [OpenVinoBackend()]
