"""`naiad simulate`: runs a model's scheduler over recorded or random arrivals, on a virtual clock."""

import argparse
import math
from collections.abc import Callable
from pathlib import Path

from naiad.errors import PluginError
from naiad_cli.number_types import number, number_from_one, seconds
from naiad_cli.parser import Parser, Subparsers
from naiad_config.installing import install_command

FORMS = "poisson:RATE, uniform:RATE, burst:N@EVERY_MS or a .csv or .jsonl file of recorded arrivals"
DURATION = 10.0
"""As in `naiad_testing.arrivals`, which may be missing where `--help` and completion describe the command."""


def add_parser(subparsers: "Subparsers[Parser]") -> None:
    """Add the command `simulate`."""
    parser = subparsers.add_parser(
        "simulate",
        description="What a model's scheduler makes of arrivals, on a virtual clock: batch sizes, reasons, waits and "
        "drops. The model itself is not loaded; say with --service-time-ms how long it takes.",
        epilog="example: naiad simulate models/digits --arrivals poisson:800 --service-time-ms 4+0.3",
    )
    parser.add_argument("config", metavar="CONFIG", help="a config.pbtxt, or a model directory")
    parser.add_argument("--arrivals", required=True, metavar="SPEC", help=FORMS)
    parser.add_argument(
        "--duration",
        type=seconds(),
        metavar="S",
        help=f"seconds of arrivals (default: {DURATION:g}, or all that were recorded)",
    )
    parser.add_argument(
        "--instances",
        type=number_from_one,
        metavar="N",
        help="how many instances (default: as the configuration says)",
    )
    parser.add_argument(
        "--service-time-ms",
        type=_service_time,
        default="5",
        metavar="A[+B]",
        help="milliseconds that a batch takes: A, and B for each item in it (default: %(default)s)",
    )
    parser.add_argument("--seed", type=int, default=0, metavar="N", help="for random arrivals (default: %(default)s)")
    parser.add_argument(
        "--sequences",
        type=number_from_one,
        default="8",
        metavar="N",
        help="how many sequences run at once, if the model needs sequences and the arrivals name none "
        "(default: %(default)s)",
    )
    parser.add_argument(
        "--sequence-length",
        type=number_from_one,
        default="20",
        metavar="N",
        help="how many requests such a sequence has (default: %(default)s)",
    )
    parser.add_argument("--timeline", action="store_true", help="also print what was in each row of the first batches")
    parser.add_argument(
        "--svg", type=Path, metavar="FILE", help="also draw the first batches, when they ran and where, as a picture"
    )
    parser.add_argument("--json", action="store_true", help="print one JSON object instead of tables")
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Print the figures of the simulation. Raises PluginError where naiad-testing is not installed."""
    try:
        from naiad_cli.simulation import print_simulation  # only now: --help is answered at once
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] != "naiad_testing":
            raise
        raise PluginError(f"the simulator is in naiad-testing: {install_command('naiad-cli[simulate]')}") from error
    return print_simulation(arguments)


def _service_time(text: str) -> Callable[[int], float]:
    """Seconds by batch size, from `A` or `A+B` in milliseconds."""
    fixed, plus, per_item = text.partition("+")
    milliseconds = (number(fixed), number(per_item) if plus else 0.0)
    if not all(0 <= part < math.inf for part in milliseconds):
        raise argparse.ArgumentTypeError(f"'{text}' is not a time in milliseconds such as 5 or 4+0.3")
    return lambda size: (milliseconds[0] + milliseconds[1] * size) / 1e3
