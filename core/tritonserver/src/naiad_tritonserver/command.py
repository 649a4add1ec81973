"""The command `tritonserver`: `naiad serve` with the same words, for start scripts and pods written for Triton.

`naiad tritonserver` is the same, for pods whose arguments begin with `tritonserver` and whose image starts `naiad`.
"""

import argparse
import sys
from collections.abc import Sequence
from typing import Any

from naiad_cli.main import main as run

_HELP = (["--help"], ["-h"], ["help"])


def main(words: Sequence[str] | None = None) -> int:
    """Run `naiad serve` with these words, those of the command line without any, and return its exit status.

    The status is 0 once the server has stopped in order, 2 for an option that neither server has, 1 for what else keeps
    the server from starting.
    """
    options = list(sys.argv[1:] if words is None else words)
    if options in _HELP:
        sys.stdout.write("tritonserver runs `naiad serve`, which takes the options of Triton too:\n\n")
        options = ["--help"]
    return run(["serve", *options])


def add_parser(subparsers: Any) -> None:
    """Add the command `tritonserver` to `naiad`; `serve` parses its words."""
    parser = subparsers.add_parser("tritonserver", add_help=False, prefix_chars="\0")  # so that no word is an option
    parser.add_argument("options", nargs="*")
    parser.set_defaults(run=run_options)


def run_options(arguments: argparse.Namespace) -> int:
    """Run `naiad serve` with the words behind `naiad tritonserver`."""
    return main(arguments.options)
