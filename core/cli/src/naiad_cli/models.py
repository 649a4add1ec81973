"""`naiad models`: lists the models of a running server with their states and reasons."""

import argparse

from naiad_cli.client import add_server_options, client_of
from naiad_cli.parser import Parser, Subparsers
from naiad_cli.tables import add_json_option, print_json, print_table


def add_parser(subparsers: "Subparsers[Parser]") -> None:
    """Add the command `models`."""
    parser = subparsers.add_parser(
        "models", description="The models of a running server, their states and the reasons."
    )
    add_server_options(parser)
    parser.add_argument("--ready", action="store_true", help="only those that can serve")
    add_json_option(parser)
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Print the repository index as a table."""
    body = b'{"ready": true}' if arguments.ready else b"{}"
    index = client_of(arguments).post("v2", "repository", "index", body=body).json()
    if arguments.json:
        print_json(index)
        return 0
    rows = [tuple(str(entry.get(key, "")) for key in ("name", "version", "state", "reason")) for entry in index]
    print_table(("Model", "Version", "State", "Reason"), rows)
    return 0
