"""Hook implementations of this plugin."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from naiad import hookimpl

if TYPE_CHECKING:
    from naiad.extend import LoopRunner, WorkerKind
    from naiad.options import Option, Settings


@hookimpl
def naiad_options() -> "Sequence[Option]":
    """Where instances live that say nothing about it."""
    from naiad.options import Option

    text = "where instances live whose model has no parameter isolation"
    return [Option("isolation", "thread", text, choices=("thread", "process"))]


@hookimpl
def naiad_workers(settings: "Settings", runner: "LoopRunner | None") -> "Sequence[WorkerKind]":
    """Workers with processes."""
    from naiad_process_workers.kind import ProcessKind

    return [ProcessKind(settings["isolation"])]
