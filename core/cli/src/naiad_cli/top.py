"""`naiad top`: a live table of the models of a running server, from its metrics."""

import argparse
import math
import sys
import time
import urllib.parse
from collections.abc import Iterator, Mapping
from dataclasses import asdict, replace

from naiad.errors import NaiadError, UsageError
from naiad_cli.client import Client, add_server_options, client_of
from naiad_cli.logs import takes_colours
from naiad_cli.number_types import seconds
from naiad_cli.option_sources import from_variable
from naiad_cli.parser import Parser, Subparsers
from naiad_cli.tables import add_json_option, drawn_table, print_json, print_table
from naiad_cli.top_figures import Counters, Figures, Version, figures_between, read_metrics

_COLUMNS = ("Model", "Version", "State", "Req/s", "p50 ms", "p99 ms", "Batch", "Queue", "In flight", "Busy s", "Err/s")
_ADVICE = "start one with naiad serve DIR, or name the address of its metrics with --metrics-url"
_METRICS_PORT = 8002

Rows = Mapping[Version, tuple[str, Figures | None]]
"""The state of each version, and its figures where it has metrics."""


def add_parser(subparsers: "Subparsers[Parser]") -> None:
    """Add the command `top`."""
    parser = subparsers.add_parser(
        "top",
        description="The models of a running server, again every few seconds until Ctrl-C: requests and errors per "
        "second, latencies, batch sizes, queues and how long an execution has run. It reads the metrics, which come "
        "with naiad-metrics.",
    )
    add_server_options(parser)
    parser.add_argument(
        "--metrics-url",
        default=from_variable("metrics-url", ""),
        metavar="URL",
        help=f"where the metrics are (default: NAIAD_METRICS_URL, else port {_METRICS_PORT} of the host of --url)",
    )
    parser.add_argument(
        "--interval",
        type=seconds(0.1, 3600),
        default=2.0,
        metavar="SECS",
        help="seconds between two looks (default: 2)",
    )
    parser.add_argument("--once", action="store_true", help="print one table, of one interval; so it is in a pipe")
    add_json_option(parser)
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Show the table until Ctrl-C, or once."""
    client = client_of(arguments)
    page = arguments.metrics_url or _metrics_url(arguments.url)
    address = page.rstrip("/").removesuffix("/metrics")  # the log names the page with its path
    metrics = replace(client, url=address, advice=_ADVICE)
    looks = _looks(client, metrics, arguments.interval)
    if arguments.json:
        rows = next(looks)
        print_json(
            [
                {"name": name, "version": version, "state": state, **(_finite(figures) if figures else {})}
                for (name, version), (state, figures) in rows.items()
            ]
        )
    elif arguments.once or not sys.stdout.isatty():
        print_table(_COLUMNS, _cells(next(looks)))
    else:
        _follow(looks, client.url)
    return 0


def _follow(looks: Iterator[Rows], url: str) -> None:
    from rich.console import Console
    from rich.live import Live

    console = Console(no_color=not takes_colours(sys.stdout))
    with Live(f"reading the metrics of {url} …", console=console, screen=True, auto_refresh=False) as live:
        try:
            for rows in looks:
                live.update(drawn_table(_COLUMNS, _cells(rows), f"{url}, {time.strftime('%H:%M:%S')}"), refresh=True)
        except KeyboardInterrupt:
            return


def _looks(client: Client, metrics: Client, interval: float) -> Iterator[Rows]:
    """The rows of each interval. Raises NaiadError when the metrics cannot be read."""
    before, read_at = _read(metrics), time.monotonic()
    while True:
        time.sleep(interval)
        states, after, now = _states(client), _read(metrics), time.monotonic()
        names = sorted({*states, *after})
        yield {
            name: (
                states.get(name, "READY" if name in after else ""),
                figures_between(before.get(name, Counters()), after[name], now - read_at) if name in after else None,
            )
            for name in names
        }
        before, read_at = after, now


def _read(metrics: Client) -> dict[Version, Counters]:
    try:
        return read_metrics(metrics.get("metrics").body.decode())
    except NaiadError as error:
        raise type(error)(f"the metrics cannot be read: {error}") from error


def _states(client: Client) -> dict[Version, str]:
    """The states in the repository index; none where the server does not show it."""
    try:
        index = client.post("v2", "repository", "index", body=b"{}").json()
    except UsageError:
        raise
    except NaiadError:
        return {}
    return {(each["name"], each.get("version", "")): each.get("state", "") for each in index if each.get("state")}


def _cells(rows: Rows) -> list[tuple[str, ...]]:
    cells = []
    for (name, version), (state, figures) in rows.items():
        numbers: tuple[str, ...] = ("",) * 8
        if figures is not None:
            numbers = (
                f"{figures.rate:.1f}",
                _shown(figures.p50),
                _shown(figures.p99),
                _shown(figures.mean_batch),
                str(figures.queued),
                str(figures.in_flight),
                f"{figures.busy:.1f}",
                f"{figures.errors:.1f}",
            )
        cells.append((name, version, state, *numbers))
    return cells


def _shown(value: float) -> str:
    return "" if math.isnan(value) else f"{value:.2f}"


def _finite(figures: Figures) -> dict[str, float | None]:
    """The figures for JSON, which has no NaN."""
    return {key: None if math.isnan(value) else value for key, value in asdict(figures).items()}


def _metrics_url(url: str) -> str:
    """The address of the metrics of the server at `url`, where it has them by default."""
    try:
        host = urllib.parse.urlsplit(url if "://" in url else f"http://{url}").hostname or ""
    except ValueError as error:
        raise UsageError(f"--url {url} is not an HTTP address: {error}") from error
    return f"http://{f'[{host}]' if ':' in host else host}:{_METRICS_PORT}"
