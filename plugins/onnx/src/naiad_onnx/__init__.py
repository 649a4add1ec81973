"""Hook implementations of this plugin."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from naiad import hookimpl

if TYPE_CHECKING:
    from naiad.backend import Backend


@hookimpl
def naiad_backends() -> "Sequence[Backend]":
    """The backend `onnxruntime`: ONNX models on ONNX Runtime."""
    from naiad_onnx.backend import OnnxBackend

    return [OnnxBackend()]
