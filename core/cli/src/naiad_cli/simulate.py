"""`naiad simulate`: runs a model's scheduler over recorded or random arrivals, on a virtual clock."""

import argparse
import json
import math
import random
import shutil
import sys
from collections.abc import Callable, Mapping, Set
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from naiad import PluginRegistry
from naiad.errors import InvalidArgumentError
from naiad_cli.parser import Parser, Subparsers
from naiad_cli.sequences import has_text_ids, signals_of, wants_sequences
from naiad_cli.tables import print_table
from naiad_testing.arrivals import DURATION, FORMS, arrivals_of, in_sequences
from naiad_testing.history import Log
from naiad_testing.pictures import picture
from naiad_testing.simulation import simulate
from naiad_testing.summary import Summary, summarise
from naiad_testing.timeline import timeline

if TYPE_CHECKING:
    from naiad_config import ModelConfig


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
        type=_seconds,
        metavar="S",
        help=f"seconds of arrivals (default: {DURATION:g}, or all that were recorded)",
    )
    parser.add_argument(
        "--instances",
        type=_number_from_one,
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
        type=_number_from_one,
        default="8",
        metavar="N",
        help="how many sequences run at once, if the model needs sequences and the arrivals name none "
        "(default: %(default)s)",
    )
    parser.add_argument(
        "--sequence-length",
        type=_number_from_one,
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
    """Print the figures of the simulation."""
    from naiad import ModelInspector  # only now: --help is answered at once

    registry = PluginRegistry.discover()
    for warning in registry.warnings():
        print(f"warning: {warning}", file=sys.stderr)
    inspector = ModelInspector(registry)
    config = inspector.config(Path(arguments.config))
    factory = inspector.scheduler(config)
    instances = arguments.instances or _instances_of(config)
    chance = random.Random(arguments.seed)  # noqa: S311 - arrivals that can be repeated, no secrets
    arrivals = arrivals_of(arguments.arrivals, arguments.duration, chance)
    if wants_sequences(config) and not any(arrival.sequence_id for arrival in arrivals):
        arrivals = in_sequences(arrivals, arguments.sequences, arguments.sequence_length, has_text_ids(config))
    log = simulate(factory.create(config, instances), arrivals, arguments.service_time_ms, instances)
    if arguments.svg is not None:
        _draw(arguments.svg, log, signals_of(config))
    if arguments.json:
        print(json.dumps(_figures(summarise(log)) | {"scheduler": factory.name, "instances": instances}))
    else:
        _print_tables(summarise(log), factory.name, instances)
    if arguments.timeline and not arguments.json:
        width = shutil.get_terminal_size().columns if sys.stdout.isatty() else 0
        print("\n".join(timeline(log, columns_of_terminal=width)))
    return 0


def _draw(file: Path, log: Log, signals: Mapping[str, Set[str]]) -> None:
    try:
        file.write_text(picture(log, signals=signals), encoding="utf-8")
    except OSError as error:
        raise InvalidArgumentError(
            f"the picture cannot be written to {file}: {error}; name a file elsewhere"
        ) from error


def _instances_of(config: "ModelConfig") -> int:
    """How many instances take batches, also of groups whose GPUs are not in this machine."""
    groups = [group for group in config.instance_group if not group.passive]
    return max(1, sum(max(1, group.count) * max(1, len(group.gpus)) for group in groups))


def _figures(summary: Summary) -> dict[str, Any]:
    return asdict(summary) | {"mean_batch_size": summary.mean_batch_size, "throughput": summary.throughput}


def _print_tables(summary: Summary, scheduler: str, instances: int) -> None:
    figures = (
        ("scheduler", f"{scheduler}, {instances} instance{'s' if instances > 1 else ''}"),
        ("requests", str(summary.requests)),
        ("sent", f"{summary.sent} in {summary.batches} batches, {summary.mean_batch_size:.2f} items each"),
        *((f"dropped: {reason}", str(count)) for reason, count in summary.dropped.items()),
        *((("left by their callers", str(summary.departed)),) if summary.departed else ()),
        ("wait p50", _milliseconds(summary.wait_p50)),
        ("wait p99", _milliseconds(summary.wait_p99)),
        ("wait max", _milliseconds(summary.wait_max)),
        ("throughput", f"{summary.throughput:.1f} requests/s over {summary.span:.3f} s"),
        ("utilisation", f"{summary.utilisation:.1%}"),
    )
    print_table(("Figure", "Value"), figures)
    print_table(("Batch size", "Batches", "Share"), _counted(summary.batch_sizes, summary.batches))
    print_table(("Why a batch was sent", "Batches", "Share"), _counted(summary.reasons, summary.batches))


def _counted(counts: Mapping[Any, int], total: int) -> list[tuple[str, str, str]]:
    return [(str(key), str(count), f"{count / total:.1%}") for key, count in counts.items()]


def _milliseconds(seconds: float) -> str:
    return f"{seconds * 1e3:.3f} ms"


def _seconds(text: str) -> float:
    number = _number(text)
    if not 0 < number < math.inf:
        raise argparse.ArgumentTypeError(f"'{text}' is not a positive number of seconds")
    return number


def _number_from_one(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"'{text}' is not a whole number from 1")
    return int(text)


def _service_time(text: str) -> Callable[[int], float]:
    """Seconds by batch size, from `A` or `A+B` in milliseconds."""
    fixed, plus, per_item = text.partition("+")
    milliseconds = (_number(fixed), _number(per_item) if plus else 0.0)
    if not all(0 <= part < math.inf for part in milliseconds):
        raise argparse.ArgumentTypeError(f"'{text}' is not a time in milliseconds such as 5 or 4+0.3")
    return lambda size: (milliseconds[0] + milliseconds[1] * size) / 1e3


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return math.nan
