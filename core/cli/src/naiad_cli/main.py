"""Entry point of the command `naiad`: imports one subcommand and runs it; turns errors into a message and a status."""

import importlib
import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from io import TextIOWrapper
from typing import TextIO

from naiad import __version__
from naiad.errors import NaiadError
from naiad_cli.collector import imports_uncollected
from naiad_cli.extra_commands import PUBLISHED_COMMANDS, add_extra_command, extra_commands
from naiad_cli.parser import Parser, did_you_mean, exit_status


@dataclass(frozen=True, slots=True)
class Command:
    """A subcommand: its name, the module with its `add_parser(subparsers)`, and one line of help.

    `add_parser` sets `run`, a function from the parsed arguments to the exit status, as the parser's default.
    """

    name: str
    module: str
    help: str


COMMANDS = (
    Command("serve", "naiad_cli.serve", "serve the models of a repository"),
    Command("check", "naiad_cli.check", "list every problem of every model in a repository"),
    Command("models", "naiad_cli.models", "list the models of a running server"),
    Command("infer", "naiad_cli.infer", "send one request to a running server"),
    Command("top", "naiad_cli.top", "show rates and latencies of a running server"),
    Command("plugins", "naiad_cli.plugins", "list what is installed and what it offers"),
    Command("simulate", "naiad_cli.simulate", "run a scheduler on a virtual clock"),
    Command("new", "naiad_cli.new", "write the start of a model or a plugin"),
    Command("completion", "naiad_cli.completion", "print the completion script of a shell"),
)


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit status: 0, or with the reason on stderr 1, or 2 for a mistake in it."""
    _open_closed_streams()
    if isinstance(sys.stdout, TextIOWrapper):  # as stderr has it: a name or a log line may hold any character
        sys.stdout.reconfigure(errors="backslashreplace")
    words = list(sys.argv[1:] if argv is None else argv)
    if words[:1] == ["help"]:
        words = [*words[1:2], "--help", *words[2:3]]
    command_name = words[0] if words else ""
    try:
        _check_command(command_name)
        with imports_uncollected():
            arguments = command_parser(command_name).parse_args(words or ["--help"])
        arguments.words = words
        return int(arguments.run(arguments))
    except NaiadError as error:
        print(f"naiad {command_name}: {error}", file=sys.stderr)
        return exit_status(error)
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:  # the reader of our pipe has left, as in `naiad models | head -1`
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0


def _open_closed_streams() -> None:
    """Open /dev/null in place of the standard streams that this process was started without.

    Otherwise a socket gets descriptor 0, 1 or 2. libuv refuses to close these, and aborts the process at its stop.
    """
    for descriptor, name in enumerate(("stdin", "stdout", "stderr")):
        try:
            os.fstat(descriptor)
        except OSError:
            os.set_inheritable(os.open(os.devnull, os.O_RDWR), True)  # the lowest descriptor that is free: this one
        if getattr(sys, name) is None:
            setattr(sys, name, _stream(descriptor))


def _stream(descriptor: int) -> TextIO:
    return open(descriptor, "w" if descriptor else "r", encoding="utf-8", closefd=False)


def _check_command(name: str) -> None:
    """Exit with status 2 for a word that is no command, with the nearest one."""
    if not name or name.startswith("-"):
        return
    own = [*(command.name for command in COMMANDS), "help"]
    if name in own or name in PUBLISHED_COMMANDS or name in extra_commands(own):
        return
    near = did_you_mean(name, [*own, *PUBLISHED_COMMANDS])
    print(f"naiad: there is no command '{name}'{near or '; naiad --help lists them'}", file=sys.stderr)
    raise SystemExit(2)


def command_parser(command_name: str) -> Parser:
    """The parser of all commands; only the one that is wanted knows its arguments."""
    parser = Parser("naiad", description="Naiad serves models of any framework over HTTP and gRPC.")
    parser.add_argument("-V", "--version", action="version", version=f"naiad {__version__}")
    subparsers = parser.add_subparsers(dest="command", metavar="COMMAND", required=True, parser_class=Parser)
    for command in COMMANDS:
        if command.name == command_name:
            importlib.import_module(command.module).add_parser(subparsers)
        else:
            subparsers.add_parser(command.name, help=command.help)
    if command_name not in {command.name for command in COMMANDS}:
        extra = extra_commands([command.name for command in COMMANDS])
        if command_name in extra or command_name in PUBLISHED_COMMANDS:
            add_extra_command(command_name, extra, subparsers)
        for name in extra:
            if name != command_name:
                subparsers.add_parser(name, help=extra[name].help)
    subparsers.add_parser("help", help="show this help, or that of a command")
    return parser


if __name__ == "__main__":
    sys.exit(main())
