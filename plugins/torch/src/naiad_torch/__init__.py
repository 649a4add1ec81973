"""Hook implementations of this plugin."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from naiad import hookimpl

if TYPE_CHECKING:
    from naiad.backend import Backend


@hookimpl
def naiad_backends() -> "Sequence[Backend]":
    """The backend `pytorch`: TorchScript, exported programs, AOTInductor packages and modules in Python."""
    from naiad_torch.backend import TorchBackend

    return [TorchBackend()]
