"""`naiad plugins`: what is installed, what each plugin offers, and why one was skipped."""

import argparse
from collections.abc import Iterator

from naiad import PluginRegistry
from naiad_cli.parser import Parser, Subparsers
from naiad_cli.tables import print_table


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
        offers = [str(offer).removeprefix(f"{offer.kind} ") for offer in report.offers if offer.kind != "options"]
        kinds = [kind for kind in report.kinds if kind != "options"]
        yield report.name, distribution, ", ".join(kinds), ", ".join(offers)
