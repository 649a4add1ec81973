"""Hook implementations of this plugin."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from naiad import hookimpl

if TYPE_CHECKING:
    from naiad.extend import Service
    from naiad.options import Option, Settings


@hookimpl
def naiad_options() -> "Sequence[Option]":
    """The options of shared memory."""
    from naiad_shared_memory.options import OPTIONS

    return OPTIONS


@hookimpl
def naiad_services(settings: "Settings") -> "Sequence[Service]":
    """The regions that clients register."""
    from naiad_shared_memory.regions import SharedMemory

    return [SharedMemory.of(settings)]
