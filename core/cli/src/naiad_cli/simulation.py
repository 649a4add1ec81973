"""What `naiad simulate` prints: the figures of one simulation. It needs naiad-testing."""

import argparse
import json
import random
import shutil
import sys
from collections.abc import Mapping, Set
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from naiad import ModelInspector, PluginRegistry
from naiad.errors import InvalidArgumentError
from naiad_cli.sequences import has_text_ids, signals_of, wants_sequences
from naiad_cli.tables import print_table, print_warnings
from naiad_testing.arrivals import arrivals_of, in_sequences
from naiad_testing.history import Log
from naiad_testing.pictures import picture
from naiad_testing.simulation import simulate
from naiad_testing.summary import Summary, summarise
from naiad_testing.timeline import timeline

if TYPE_CHECKING:
    from naiad_config import ModelConfig


def print_simulation(arguments: argparse.Namespace) -> int:
    """Simulate what the arguments say and print the figures. Returns the exit status."""
    registry = PluginRegistry.discover()
    print_warnings(registry.warnings())
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
