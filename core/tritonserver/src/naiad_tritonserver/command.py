"""The command `tritonserver`: `naiad serve` with the same words, for start scripts and pods written for Triton."""

import sys
from collections.abc import Sequence

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
