"""`naiad serve`: reads the options, runs the server until a signal, and exits with a status."""

import argparse
import asyncio
import functools
import logging
import shutil
import sys
from typing import Any

from naiad import PluginRegistry
from naiad.errors import InvalidArgumentError
from naiad.options import Settings
from naiad_cli.logs import logging_to
from naiad_cli.options import add_options, chosen_values, in_order, refuse_unknown
from naiad_cli.parser import Parser, Subparsers
from naiad_cli.process_end import end_process, end_process_later, flush
from naiad_cli.supervisor import Supervisor, is_supervised
from naiad_cli.terminal import StatusLine
from naiad_cli.triton_options import take_triton_options, triton_options
from naiad_kit.frontends.log_control import LogControl

_logger = logging.getLogger("naiad")

_MANY_FILES = 65536


def add_parser(subparsers: "Subparsers[Parser]") -> None:
    """Add the command `serve` with the options of the kernel and of every plugin that is installed."""
    registry = PluginRegistry.discover()
    options = registry.options()
    parser = subparsers.add_parser(
        "serve",
        usage="naiad serve [OPTION]... DIR...",
        description="Serve the models of the repositories DIR until SIGINT, SIGTERM or SIGHUP.",
        epilog="Write --name=value or --name value; a bare --name switches on. Further options come with plugins: "
        "see naiad plugins.",
    )
    parser.add_argument("repositories", nargs="*", metavar="DIR", help="a model repository, as --model-repository")
    of_plugins = {
        report.name: {offer.name.removeprefix("--") for offer in report.contributions if offer.kind == "options"}
        for report in registry.plugins
    }
    foreign = {name for names in of_plugins.values() for name in names}
    add_options(parser, [option for option in options if option.name not in foreign], "server options")
    for plugin, names in of_plugins.items():
        if names:
            add_options(parser, [option for option in options if option.name in names], f"options of plugin {plugin}")
    of_triton = triton_options({option.name for option in options})
    add_options(parser, of_triton, "options of Triton that change nothing, and why")
    every = (*options, *of_triton)
    parser.rewrite = lambda words: in_order(words, every)
    parser.refuse = lambda words: refuse_unknown(words, every, functools.partial(registry.what_to_install, "option"))
    parser.set_defaults(run=lambda arguments: run(arguments, registry))


def run(arguments: argparse.Namespace, registry: PluginRegistry) -> int:
    """Serve, and return 0 when everything that was in flight could be answered in time, else 1."""
    registry.check()
    options = registry.options()
    of_triton = triton_options({option.name for option in options})
    values = chosen_values((*options, *of_triton), arguments)
    warnings = list(take_triton_options(values, of_triton))
    values["model-repository"] = (*values.get("model-repository", ()), *arguments.repositories)
    if not values["model-repository"]:
        raise InvalidArgumentError("no model repository is given; write naiad serve DIR")
    if not registry.frontends():
        registry.frontend("http")  # raises, with what to install: a server that no client can reach is a mistake
    settings = Settings(options, values)
    if settings["restart"] and not is_supervised():
        with logging_to(settings):
            return Supervisor(arguments.words).run()
    status_line = _status_line(settings)
    streams = (status_line.above(sys.stdout), status_line.above(sys.stderr)) if status_line else ()
    _allow_many_files()
    with logging_to(settings, *streams) as log:
        for warning in warnings:
            _logger.warning("%s", warning)
        return _serve(values, registry, settings, status_line, log)


def _serve(
    values: dict[str, Any],
    registry: PluginRegistry,
    settings: Settings,
    status_line: StatusLine | None,
    log: LogControl,
) -> int:
    # the server is imported only now: --help and mistakes are answered at once
    from naiad_cli.memory import bound_allocator
    from naiad_cli.serving import serve
    from naiad_cli.stop_signals import ignore_termination

    bound_allocator()
    with asyncio.Runner(loop_factory=_loop_factory()) as process:
        loop = process.get_loop()
        runner = registry.loop_runner(loop, settings)
        run_loop = loop.run_until_complete if runner is None else runner.run
        end = run_loop(serve(values, status_line, log, runner))
        if end.threads_remain or not flush():
            end_process(end.status)
        end_process_later(end.status)
        ignore_termination()
    return end.status


def _allow_many_files() -> None:
    """Raise the soft limit of open files as far as it may be: each client is one, and the usual 1024 are few."""
    try:
        import resource
    except ImportError:  # Windows has no such limit
        return
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    limit = _MANY_FILES if hard == resource.RLIM_INFINITY else min(hard, _MANY_FILES)
    if soft != resource.RLIM_INFINITY and soft < limit:
        resource.setrlimit(resource.RLIMIT_NOFILE, (limit, hard))


def _loop_factory() -> Any:
    try:
        import uvloop
    except ImportError:
        return None
    return uvloop.new_event_loop


def _status_line(settings: Settings) -> StatusLine | None:
    """A status line when people watch: both streams are a terminal, and no machine reads the log."""
    if settings["log-format"] == "json" or not (sys.stdout.isatty() and sys.stderr.isatty()):
        return None
    return StatusLine(sys.stdout, shutil.get_terminal_size().columns)
