"""`naiad serve`: reads the options, runs the server until a signal, and exits with a status."""

import argparse
import asyncio
import faulthandler
import functools
import logging
import shutil
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from naiad import PluginRegistry
from naiad.errors import UsageError
from naiad.options import Option, Settings
from naiad.server import Named
from naiad_cli.collector import imports_uncollected
from naiad_cli.logs import logging_to
from naiad_cli.model_files import MODEL_NAME, ModelFiles
from naiad_cli.options import add_options, in_order, refuse_unknown
from naiad_cli.parser import Parser, Subparsers
from naiad_cli.process_end import end_process, end_process_later, flush
from naiad_cli.serve_help import USAGE, OptionGroup, add_help, with_topic
from naiad_cli.serve_options import OWN_OPTIONS, every_option, read_arguments
from naiad_cli.supervisor import Supervisor, follow_supervisor, is_supervised
from naiad_cli.terminal import StatusLine
from naiad_cli.triton_options import triton_options
from naiad_kit.frontends.log_control import LogControl

_logger = logging.getLogger("naiad")

_MANY_FILES = 65536


def add_parser(subparsers: "Subparsers[Parser]") -> None:
    """Add the command `serve` with the options of the kernel and of every plugin that is installed."""
    registry = PluginRegistry.discover()
    options = registry.options()
    every = every_option(registry)
    parser = subparsers.add_parser(
        "serve",
        usage=USAGE,
        add_help=False,
        rewrite=lambda words: in_order(with_topic(words), every, _can_be_served),
        refuse=lambda words: refuse_unknown(words, every, functools.partial(registry.what_to_install, "option")),
    )
    parser.add_argument(
        "repositories", nargs="*", metavar="DIR|FILE", help="a model repository, as --model-repository, or a model file"
    )
    groups = list(_option_groups(registry, options))
    add_help(parser, groups)
    for group in groups:
        add_options(parser, group.options, group.title)
    parser.set_defaults(run=lambda arguments: run(arguments, registry))


def _option_groups(registry: PluginRegistry, options: Sequence[Option]) -> Iterator[OptionGroup]:
    """The options of the server, of each plugin that has some, and those of Triton without effect."""
    of_plugins = {
        report.name: {offer.name.removeprefix("--") for offer in report.contributions if offer.kind == "options"}
        for report in registry.plugins
    }
    foreign = {name for names in of_plugins.values() for name in names}
    own = [*OWN_OPTIONS, *(option for option in options if option.name not in foreign)]
    yield OptionGroup("server", "options of the server", own)
    for plugin, names in of_plugins.items():
        if names:
            of_plugin = [option for option in options if option.name in names]
            yield OptionGroup(plugin, f"options of plugin {plugin}", of_plugin)
    of_triton = triton_options({option.name for option in options})
    yield OptionGroup("triton", "options of Triton that change nothing, and why", of_triton)


def run(arguments: argparse.Namespace, registry: PluginRegistry) -> int:
    """Serve, and return 0 when everything that was in flight could be answered in time, else 1."""
    registry.check()
    read = read_arguments(arguments, registry)
    values, own, warnings = read.values, read.own, read.warnings
    if own.get("reload"):
        _follow_changes(values)
    frontends = registry.frontends()
    if not frontends:  # a server that no client can reach is a mistake
        registry.find("frontend", "http", frontends)  # raises, with what to install
    settings = Settings(registry.options(), values)
    _check_start_up_models(settings)
    if is_supervised():
        follow_supervisor()
    elif settings["restart"]:
        with logging_to(settings):
            return Supervisor(arguments.words).run()
    status_line = _status_line(settings)
    stdout, stderr = (status_line.above(each) if status_line else each for each in (sys.stdout, sys.stderr))
    _allow_many_files()
    with (
        ModelFiles(read.words, registry, own.get(MODEL_NAME.name, "")) as files,
        logging_to(settings, stdout, stderr, files.in_words_of_user) as log,
    ):
        values["model-repository"] = files.repositories
        if settings["model-control-mode"] == "poll":
            files.follow()
        elif settings["model-control-mode"] == "none":
            warnings += files.warnings()
        for warning in warnings:
            _logger.warning("%s", warning)
        keys = _api_keys(own.get("api-keys", ""))
        with _access_log(own.get("access-log", "off"), log) as services:
            return _serve(files, values, registry, settings, status_line, [log, *keys, *services])


def _check_start_up_models(settings: Settings) -> None:
    """Raises UsageError for a `--load-model` that has no effect: every model is loaded at start anyway."""
    names, mode = settings["load-model"], settings["model-control-mode"]
    if names and mode != "explicit":
        raise UsageError(
            f"--load-model={names[0]} needs --model-control-mode=explicit: in the mode '{mode}' every model is loaded "
            "at start"
        )
    if "*" in names and {*names} != {"*"}:
        raise UsageError("--load-model=* stands for every model; leave the other --load-model out")


def _api_keys(path: str) -> Sequence[Named]:
    """The service of the API keys in that file; none without a file. Raises InvalidArgumentError for a bad one."""
    if not path:
        return ()
    from naiad_kit.frontends.api_keys import ApiKeys

    return (ApiKeys(path),)


@contextmanager
def _access_log(form: str, log: LogControl) -> Iterator[Sequence[Named]]:
    """The service of the access log, while it writes; `off` switches it on with `--log-verbose=2` alone."""
    from naiad_kit.access_log import AccessLog  # only where it is used: threads and formats

    is_json = log.options["log-format"] == "json"
    access = AccessLog(("json" if is_json else "text") if form == "off" else form).start()
    log.follow(lambda options: access.switch(form != "off" or options["log-verbose"] >= 2))
    try:
        yield (access,)
    finally:
        access.close()


def _can_be_served(word: str) -> bool:
    """Whether a word may be a repository or a model file: it is there, or it is an address such as s3://bucket."""
    return "://" in word or Path(word).exists()


def _follow_changes(values: dict[str, Any]) -> None:
    """Have the server poll once a second. Raises UsageError for a control mode in which it does not poll."""
    mode = values.setdefault("model-control-mode", "poll")
    if mode != "poll":
        raise UsageError(f"--reload polls, and --model-control-mode is {mode}; drop one of the two")
    values.setdefault("repository-poll-secs", 1.0)


def _serve(
    files: ModelFiles,
    values: dict[str, Any],
    registry: PluginRegistry,
    settings: Settings,
    status_line: StatusLine | None,
    services: Sequence[Named],
) -> int:
    # the server is imported only now: --help and mistakes are answered at once
    with imports_uncollected():
        from naiad_cli.allocator import bound_allocator
        from naiad_cli.serving import serve
        from naiad_cli.stop_signals import ignore_termination

    bound_allocator()
    faulthandler.enable()  # native code that crashes the process leaves the stack with the file of its model on stderr
    with asyncio.Runner(loop_factory=_loop_factory()) as process:
        loop = process.get_loop()
        runner = registry.loop_runner(loop, settings)
        run_loop = loop.run_until_complete if runner is None else runner.run
        end = run_loop(serve(values, registry, status_line, services, runner))
        files.close()
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
