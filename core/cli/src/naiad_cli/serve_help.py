"""The help of `naiad serve`: the common options on one page, and the others by plugin or by a word."""

import argparse
import shutil
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from naiad.errors import UsageError
from naiad.options import Option
from naiad_cli.options import describe_option, metavar_of, option_names
from naiad_cli.parser import did_you_mean

USAGE = "naiad serve [OPTION]... DIR|FILE..."

COMMON: Mapping[str, Sequence[str]] = {
    "models": (
        "model-repository",
        "model-name",
        "reload",
        "model-control-mode",
        "load-model",
        "exit-on-error",
        "isolation",
    ),
    "addresses (--allow-grpc=false switches gRPC off)": (
        "http-address",
        "http-port",
        "grpc-port",
        "metrics-port",
        "dashboard-address",
        "dashboard-port",
    ),
    "security (the options of gRPC have the same names, with grpc)": (
        "api-keys",
        "http-use-ssl",
        "http-server-cert",
        "http-server-key",
        "allow-uploaded-code",
    ),
    "logs and traces": ("access-log", "log-verbose", "log-format", "log-file", "allow-explain"),
    "the process": ("options", "restart", "exit-timeout-secs"),
}
"""The options that the first page of the help shows, by heading; one whose plugin is not installed is left out."""

_INDENT = 28
"""The column of descriptions."""


@dataclass(frozen=True, slots=True)
class OptionGroup:
    """Options that the help shows together: those of the server itself, of one plugin, or of Triton."""

    name: str
    title: str
    options: Sequence[Option]


def add_help(parser: argparse.ArgumentParser, groups: Sequence[OptionGroup]) -> None:
    """Add `--help` and `-h`, which show the first page, or what a word behind them names, and exit."""
    parser.add_argument(
        "-h",
        "--help",
        action=_ShowHelp,
        groups=groups,
        nargs="?",
        metavar="WORD",
        default=argparse.SUPPRESS,
        help="show the common options; with a word, all those of a plugin, or with that word in them",
    )


def with_topic(words: Sequence[str]) -> Sequence[str]:
    """The words of a command line, with the word behind `--help` joined to it: `--help=grpc` for `--help grpc`."""
    for index, word in enumerate(words):
        if word in ("-h", "--help"):
            topic = "".join(words[index + 1 : index + 2])
            return [*words[:index], f"--help={topic}", *words[index + 2 :]]
        if word == "--":
            break
    return words


def help_text(topic: str, groups: Sequence[OptionGroup], width: int) -> str:
    """The help of a topic: "" for the first page, `all`, the name of a group, or a word of options.

    Raises UsageError for a word that no option has.
    """
    if not topic:
        return "\n".join(_first_page(groups, width))
    word = topic.lower().lstrip("-").removeprefix("naiad-").replace("_", "-")
    shown = [group for group in groups if word in ("all", group.name)]
    if not shown:
        shown = [OptionGroup("", group.title, _with_word(word, group.options)) for group in groups]
    lines = [line for group in shown if group.options for line in _section(group.title, group.options, width)]
    if not lines:
        names = [name for group in groups for name in (group.name, *(option.name for option in group.options))]
        raise UsageError(f"no option has the word '{topic}'{did_you_mean(word, names) or '; see naiad serve --help'}")
    return "\n".join([f"usage: {USAGE}", *lines])


def _first_page(groups: Sequence[OptionGroup], width: int) -> Iterator[str]:
    options = {option.name: option for group in groups for option in group.options}
    yield f"usage: {USAGE}"
    yield ""
    yield from textwrap.wrap("Serve models until SIGINT, SIGTERM or SIGHUP.", width)
    yield ""
    yield from _row("naiad serve models", "every model of the model repository 'models'", width)
    yield from _row("naiad serve add.py --reload", "one file, again whenever it changes", width)
    yield from _row("naiad serve net.onnx", "a file of another framework", width)
    for title, names in COMMON.items():
        common = [options[name] for name in names if name in options]
        if common:
            yield from _section(title, common, width)
    yield ""
    yield "all options"
    for topic, description in (
        ("all", f"all {len(options)} of them"),
        ("GROUP", f"those of a group: {', '.join(f'{group.name} {len(group.options)}' for group in groups)}"),
        ("WORD", "those with a word in their name or description, as --help=tls"),
    ):
        yield from _row(f"--help={topic}", description, width)
    yield ""
    yield from textwrap.wrap(
        "Write --name=value or --name value; a bare --name switches on. NAIAD_HTTP_PORT=8000 in the environment stands "
        "for --http-port=8000. Further options come with plugins: see naiad plugins.",
        width,
    )


def _with_word(word: str, options: Sequence[Option]) -> Sequence[Option]:
    return [option for option in options if any(word in each.lower() for each in (*option_names(option), option.help))]


def _section(title: str, options: Sequence[Option], width: int) -> Iterator[str]:
    yield ""
    yield title
    for option in options:
        metavar = metavar_of(option)
        names = ", ".join(option_names(option))
        yield from _row(f"{names} {metavar}" if metavar else names, describe_option(option), width)


def _row(term: str, description: str, width: int) -> Iterator[str]:
    """A name and its description in two columns; a long name has a line of its own."""
    margin = " " * _INDENT
    lines = textwrap.wrap(description, width, initial_indent=margin, subsequent_indent=margin, break_on_hyphens=False)
    head = f"  {term}"
    if len(head) + 2 > _INDENT:
        yield head
    else:
        lines[0] = head.ljust(_INDENT) + lines[0][_INDENT:]
    yield from lines


class _ShowHelp(argparse.Action):
    """Prints the help and exits with status 0."""

    def __init__(self, *args: Any, groups: Sequence[OptionGroup], **options: Any) -> None:
        super().__init__(*args, **options)
        self._groups = groups

    def __call__(self, parser: argparse.ArgumentParser, namespace: Any, values: Any, option_string: Any = None) -> None:
        width = max(shutil.get_terminal_size().columns - 2, 60)
        print(help_text(values or "", self._groups, width))
        parser.exit()
