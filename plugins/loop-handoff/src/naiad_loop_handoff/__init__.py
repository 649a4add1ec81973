"""Hook implementations of this plugin."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from naiad import hookimpl

if TYPE_CHECKING:
    import asyncio

    from naiad.extend import LoopRunner, WorkerKind
    from naiad.options import Option, Settings


@hookimpl
def naiad_options() -> "Sequence[Option]":
    """The switch."""
    from naiad.options import Option, boolean

    return [Option("loop-handoff", True, "let the threads of quick models run the event loop", boolean)]


@hookimpl
def naiad_runners(loop: "asyncio.AbstractEventLoop") -> "Sequence[LoopRunner]":
    """The event loop on changing threads."""
    from naiad_loop_handoff.handoff import LoopHandoff

    return [LoopHandoff(loop)]


@hookimpl
def naiad_workers(settings: "Settings", runner: "LoopRunner | None") -> "Sequence[WorkerKind]":
    """Workers that run the event loop, where this plugin runs it, and the event loop for models that ask for it."""
    from naiad_loop_handoff.handoff import LoopHandoff
    from naiad_loop_handoff.kinds import EventLoopKind, HandoffKind

    leads: bool = settings["loop-handoff"]
    return [*([HandoffKind(runner, leads)] if isinstance(runner, LoopHandoff) else []), EventLoopKind()]
