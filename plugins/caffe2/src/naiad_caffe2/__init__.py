"""Hook implementations of this plugin."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from naiad import hookimpl

if TYPE_CHECKING:
    from naiad.backend import Backend


@hookimpl
def naiad_backends() -> "Sequence[Backend]":
    """The backend `caffe2`: nets of Caffe2, translated to ONNX."""
    from naiad_caffe2.backend import Caffe2Backend

    return [Caffe2Backend()]
