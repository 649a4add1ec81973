"""`naiad plugins`: what is installed, what each plugin offers, and why one was skipped."""

import argparse

from naiad._kernel.plugins import PluginRegistry, PluginReport
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
    print_table(("Plugin", "Version", "Kind", "Offers"), [_row(report) for report in registry.plugins])
    registry.check()
    return 0


def _row(report: PluginReport) -> tuple[str, ...]:
    if report.skipped:
        return report.name, f"{report.distribution} {report.version}", "skipped", report.skipped
    offers = [str(offer).removeprefix(f"{offer.kind} ") for offer in report.offers if offer.kind != "options"]
    kinds = [kind for kind in report.kinds if kind != "options"]
    return report.name, f"{report.distribution} {report.version}", ", ".join(kinds), ", ".join(offers)
