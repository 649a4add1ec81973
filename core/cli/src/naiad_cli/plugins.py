"""`naiad plugins`: lists the installed plugins, what each offers, and why one was skipped."""

import argparse
from collections.abc import Iterator, Sequence

from naiad import PluginRegistry
from naiad_cli.parser import Parser, Subparsers
from naiad_cli.tables import print_table
from naiad_kit.backends.frameworks import installed_framework


def add_parser(subparsers: "Subparsers[Parser]") -> None:
    """Add the command `plugins`."""
    subparsers.add_parser(
        "plugins", description="What is installed, what each plugin offers, and why one was skipped."
    ).set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Print a table of the installed plugins; a clash between two of them is the command's error."""
    registry = PluginRegistry.discover()
    print_table(("Plugin", "Version", "Kind", "Offers"), list(rows(registry)))
    registry.check()
    return 0


def rows(registry: PluginRegistry) -> Iterator[tuple[str, ...]]:
    """The name, distribution, kinds and offers of each plugin; options are not among these."""
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
        yield report.name, distribution, ", ".join(kinds), ", ".join(offers)


def describe_framework(names: Sequence[str], install: str) -> str:
    """The installed one of these frameworks with its version, in brackets, or what to `pip install`; "" for none."""
    if not names:
        return ""
    advice = f": pip install '{install}'" if install else ""
    return f" ({installed_framework(names) or f'{names[0]} is not installed{advice}'})"
