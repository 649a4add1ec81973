"""The run of a server: loads models with a progress line, waits for a signal, drains."""

import asyncio
import logging
import os
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from time import monotonic
from typing import Any

import naiad
from naiad.errors import NaiadError
from naiad.extend import LoopRunner
from naiad.reports import IndexEntry
from naiad.server import Named
from naiad_cli.collector import collect_seldom, imports_uncollected, settle_memory
from naiad_cli.exposure import exposure
from naiad_cli.logs import flush_log
from naiad_cli.long_executions import watching_executions
from naiad_cli.memory import trimming_memory
from naiad_cli.parser import exit_status
from naiad_cli.process_end import end_process
from naiad_cli.stop_signals import StopSignals, end_without_the_interpreter
from naiad_cli.supervisor import report_serving
from naiad_cli.systemd import ServiceNotifier, take_notifier
from naiad_cli.tables import print_table
from naiad_cli.terminal import StatusLine
from naiad_cli.watchdog import watching
from naiad_kit.frontends.api_keys import ApiKeys
from naiad_kit.frontends.byte_budget import ByteBudget

_logger = logging.getLogger("naiad")

_START_SECONDS = 60.0
"""The least that the watchdog allows while the server starts: the loop imports, and frontends answer already."""


_NOTICE_SECONDS = 0.5
"""How often systemd is notified of the progress of the start, if there is some."""


@dataclass(frozen=True, slots=True)
class ServerEnd:
    """The exit status, and whether threads may still be busy with a model, so that the process must not wait."""

    status: int
    threads_remain: bool = False


async def serve(
    options: Mapping[str, Any],
    plugins: naiad.PluginRegistry,
    status_line: StatusLine | None,
    services: Sequence[Named],
    runner: LoopRunner | None,
) -> ServerEnd:
    """Serve with these options and plugins until a stop signal; with a status line, show progress and the models on it.

    `services` are those of this process, such as the control of its log; `runner` runs the event loop that this is
    called on, where that is not the main thread alone.
    """
    notifier = take_notifier(os.environ)
    keys = next((service for service in services if isinstance(service, ApiKeys)), None)
    with imports_uncollected():
        server = naiad.Server(options=options, plugins=plugins, runner=runner, services=services)
    collect_seldom()
    stop = _stop_signal(server)
    _logger.info("naiad %s serves %s", naiad.__version__, ", ".join(server.settings["model-repository"]))
    loop, limit = asyncio.get_running_loop(), server.settings["watchdog-secs"]
    try:
        with watching(loop, limit and max(limit, _START_SECONDS)):
            async with _progress(server, status_line, notifier):
                interrupted = await _start(server, stop)
    except NaiadError as error:
        notifier.stopping(str(error))
        lines = str(error).splitlines()
        for line in lines[:1] if error.logged else lines:  # what follows the first is in the log already
            _logger.error("%s", line)
        return ServerEnd(exit_status(error))
    except Exception as error:  # a plugin's, or a mistake of ours: the traceback is for those who ask for it
        notifier.stopping(f"the server cannot start: {type(error).__name__}: {error}")
        _logger.error("the server cannot start: %s: %s; --log-verbose=1 shows where", type(error).__name__, error)
        _logger.debug("the server cannot start", exc_info=True)
        return ServerEnd(1)
    if not interrupted:
        if notice := exposure(server.settings, keys is not None):
            _logger.warning("%s", notice)
        settle_memory()
        if runner is not None:
            runner.started()
        report_serving()
        notifier.ready(_describe_started(server))
        if status_line is not None:
            flush_log()
            print_models(server)
        await _serve_until(stop, server, keys)
    notifier.stopping(f"stopping; requests in flight have {server.settings['exit-timeout-secs']:g} s to end")
    ended = await server.stop(0.0 if interrupted else server.settings["lame-duck-secs"])
    _logger.info("stopped" if ended else "stopped with requests unanswered")
    return ServerEnd(0 if ended else 1, threads_remain=interrupted or not ended)


async def _serve_until(stop: asyncio.Event, server: naiad.Server, keys: ApiKeys | None) -> None:
    """Watch the event loop, executions, memory and API keys of a server that has started, until it is to stop."""
    loop, budget = asyncio.get_running_loop(), server.service(ByteBudget)

    def has_work() -> bool:
        return budget.reserved > 0 or server.has_work()

    following = loop.create_task(keys.follow()) if keys is not None else None
    with (
        watching(loop, server.settings["watchdog-secs"]),
        trimming_memory(loop, has_work),
        watching_executions(loop, server.version_reports),
    ):
        await stop.wait()
    if following is not None:
        following.cancel()


def _describe_started(server: naiad.Server) -> str:
    """What a server serves that has started, and why it is not ready, if so: a model may have failed."""
    readiness = server.ready()
    reason = "" if readiness.ready else f"; not ready when it had started: {'; '.join(readiness.reasons)}"
    return f"serves {', '.join(server.settings['model-repository'])}{reason}"


def print_models(server: naiad.Server) -> None:
    """Print a table of all models with their states."""
    rows = [(entry.name, str(entry.version or ""), entry.state, entry.reason) for entry in server.index()]
    print_table(("Model", "Version", "State", "Reason"), rows)


def _stop_signal(server: naiad.Server) -> asyncio.Event:
    """An event of the running loop that the first stop signal of the process sets."""
    stop, loop = asyncio.Event(), asyncio.get_running_loop()

    def describe_step() -> str:
        return server.stop_steps.current or ("the event loop" if stop.is_set() else "the event loop does not run")

    def set_stop() -> None:
        loop.call_soon_threadsafe(stop.set)

    grace = server.settings["exit-timeout-secs"]
    StopSignals(set_stop, describe_step, grace, end_process, end_without_the_interpreter).install()
    return stop


async def _start(server: naiad.Server, stop: asyncio.Event) -> bool:
    """Start the server; whether a signal came before it was up. Raises what `Server.start` raises."""
    starting = asyncio.ensure_future(server.start())
    stopping = asyncio.ensure_future(stop.wait())
    await asyncio.wait((starting, stopping), return_when=asyncio.FIRST_COMPLETED)
    stopping.cancel()
    if starting.done():
        starting.result()
        return False
    starting.cancel()
    await asyncio.wait((starting,))
    return True


@asynccontextmanager
async def _progress(
    server: naiad.Server, status_line: StatusLine | None, notifier: ServiceNotifier
) -> AsyncIterator[None]:
    """Show how many models are loaded, and which are still loading, while the block runs."""
    ticking = [asyncio.ensure_future(_notify_progress(server, notifier))] if notifier.is_used else []
    if status_line is not None:
        ticking.append(asyncio.ensure_future(_tick(server, status_line)))
    try:
        yield
    finally:
        for each in ticking:
            each.cancel()
        if status_line is not None:
            status_line.show("")


async def _tick(server: naiad.Server, status_line: StatusLine) -> None:
    started = monotonic()
    while True:
        await asyncio.sleep(0.1)
        counted, loading = _loading(server)
        status_line.show(f"{counted}, {monotonic() - started:.1f} s, waiting for {loading}" if loading else "")


async def _notify_progress(server: naiad.Server, notifier: ServiceNotifier) -> None:
    while True:
        counted, loading = _loading(server)
        notifier.status(f"{counted}, waiting for {loading}" if loading else "starting")
        await asyncio.sleep(_NOTICE_SECONDS)


def _loading(server: naiad.Server) -> tuple[str, str]:
    """How many models are loaded, and those that are still loading, "" for none."""
    requested = [entry for entry in server.index() if entry.state]
    loading = [_described(entry) for entry in requested if entry.state == "LOADING"]
    return f"loading models: {len(requested) - len(loading)} of {len(requested)} done", ", ".join(loading)


def _described(entry: IndexEntry) -> str:
    """A version that loads, and how far its warmup is."""
    return f"{entry.name} ({entry.reason})" if entry.reason else entry.name
