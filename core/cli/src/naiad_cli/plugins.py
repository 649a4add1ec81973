"""`naiad plugins`: lists the installed plugins, what each offers, and why one was skipped."""

import argparse
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from naiad import PluginRegistry
from naiad_cli.extra_commands import extra_commands
from naiad_cli.parser import Parser, Subparsers
from naiad_cli.tables import add_json_option, print_json, print_table
from naiad_kit.backends.frameworks import installed_framework

_COMMAND = "command"


def add_parser(subparsers: "Subparsers[Parser]") -> None:
    """Add the command `plugins`."""
    parser = subparsers.add_parser(
        "plugins", description="What is installed, what each plugin offers, and why one was skipped."
    )
    add_json_option(parser)
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Print a table of the installed plugins; a clash between two of them is the command's error."""
    registry = PluginRegistry.discover()
    if arguments.json:
        print_json(list(documents(registry)))
    else:
        print_table(("Plugin", "Version", "Kind", "Offers"), list(rows(registry)))
    registry.check()
    return 0


def documents(registry: PluginRegistry) -> Iterator[dict[str, Any]]:
    """Each plugin for programs: `skipped` is the reason, "" for one that is used; options are among its offers."""
    commands = _commands()
    for report in registry.plugins:
        yield {
            "name": report.name,
            "distribution": report.distribution,
            "version": report.version,
            "skipped": report.skipped,
            "offers": [
                *(
                    {"kind": offer.kind, "name": offer.name, "framework": installed_framework(offer.framework)}
                    for offer in report.contributions
                ),
                *({"kind": _COMMAND, "name": name, "framework": ""} for name in commands.get(report.distribution, ())),
            ],
        }


def rows(registry: PluginRegistry) -> Iterator[tuple[str, ...]]:
    """The name, distribution, kinds and offers of each plugin: each offer once, commands too, and no options."""
    commands = _commands()
    for report in registry.plugins:
        distribution = f"{report.distribution} {report.version}"
        if report.skipped:
            yield report.name, distribution, "skipped", report.skipped
            continue
        offers = [
            offer.name + describe_framework(offer.framework, offer.install)
            for offer in report.contributions
            if offer.kind != "options"
        ]
        kinds = [kind for kind in report.kinds if kind != "options"]
        own = commands.get(report.distribution, ())
        if own:
            kinds, offers = [*kinds, _COMMAND], [*offers, *own]
        yield report.name, distribution, ", ".join(kinds), ", ".join(dict.fromkeys(offers))


def _commands() -> Mapping[str, Sequence[str]]:
    """The names of the commands of `naiad` that other distributions bring, by distribution."""
    names: dict[str, list[str]] = {}
    for name, command in extra_commands(()).items():
        names.setdefault(command.distribution, []).append(name)
    return names


def describe_framework(names: Sequence[str], install: str) -> str:
    """The installed one of these frameworks with its version, in brackets, or what to `pip install`; "" for none."""
    if not names:
        return ""
    advice = f": pip install '{install}'" if install else ""
    return f" ({installed_framework(names) or f'{names[0]} is not installed{advice}'})"
