"""Hook implementations of this plugin."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from naiad import hookimpl

if TYPE_CHECKING:
    from naiad.backend import Backend


@hookimpl
def naiad_backends() -> "Sequence[Backend]":
    """The backend `tensorrt`: engines of TensorRT and of TensorRT for RTX."""
    from naiad_tensorrt.backend import TensorRtBackend

    return [TensorRtBackend()]
