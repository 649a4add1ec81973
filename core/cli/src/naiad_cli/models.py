"""`naiad models`: lists the models of a running server with their states and reasons."""

import argparse

from naiad_cli.client import DEFAULT_URL, Client
from naiad_cli.parser import Parser, Subparsers
from naiad_cli.tables import print_table


def add_parser(subparsers: "Subparsers[Parser]") -> None:
    """Add the command `models`."""
    parser = subparsers.add_parser(
        "models", description="The models of a running server, their states and the reasons."
    )
    parser.add_argument("--url", default=DEFAULT_URL, help="where the server listens (default: %(default)s)")
    parser.add_argument("--ready", action="store_true", help="only those that can serve")
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Print the repository index as a table."""
    body = b'{"ready": true}' if arguments.ready else b"{}"
    index = Client(arguments.url).post("v2", "repository", "index", body=body).json()
    rows = [tuple(str(entry.get(key, "")) for key in ("name", "version", "state", "reason")) for entry in index]
    print_table(("Model", "Version", "State", "Reason"), rows)
    return 0
