"""Hook implementations of this plugin."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from naiad import hookimpl

if TYPE_CHECKING:
    from naiad.extend import LoopRunner, Service, WorkerKind
    from naiad.options import Option, Settings


@hookimpl
def naiad_options() -> "Sequence[Option]":
    """Where instances live that say nothing about it, and whether models may bring requirements."""
    from naiad.options import Option, boolean

    isolation = "run instances in threads, in a process each, or in one process for each model"
    requirements = "install the requirements.txt beside a model.py into an environment of the model's own"
    return [
        Option("allow-model-requirements", False, requirements, boolean),
        Option("isolation", "thread", isolation, choices=("thread", "process", "model")),
    ]


@hookimpl
def naiad_services(settings: "Settings") -> "Sequence[Service]":
    """Memory in which frontends receive the inputs of isolated models, and a metric of their processes."""
    from naiad_process_workers.bodies import BodyArenasService
    from naiad_process_workers.resident_memory import ResidentMemoryService

    return [BodyArenasService(), ResidentMemoryService()]


@hookimpl
def naiad_workers(settings: "Settings", runner: "LoopRunner | None") -> "Sequence[WorkerKind]":
    """Workers with processes."""
    from naiad_process_workers.kind import ProcessKind

    return [ProcessKind(settings["isolation"], settings["allow-model-requirements"])]
