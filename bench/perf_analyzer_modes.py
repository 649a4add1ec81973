"""Runs perf_analyzer against Naiad in every mode it has, briefly: which work, and what they reach.

`python bench/perf_analyzer_modes.py [PATTERN]` runs those whose names match; `--peer` asks the peer instead. The status
is 1 when one fails. This is no measurement: windows are half a second, and it does not wait until three agree.
"""

import argparse
import json
import subprocess
import sys
import tempfile
from contextlib import ExitStack
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path

from cases import ensemble
from load import Load, LoadError, PerfAnalyzer, perf_analyzer, read_perf_analyzer
from rounds import MODELS, SEQUENCE_MODELS
from servers import Naiad, Running, find_peer


@dataclass(frozen=True, slots=True)
class Mode:
    """One way to run it; in its options stand `{folder}` for files, `{metrics}` (a port), and `{protocol}`.

    `tries` is above 1 where perf_analyzer itself mixes up the order of requests that need one.
    """

    name: str
    protocol: str
    options: tuple[str, ...]
    model: str = "add_sub"
    tries: int = 1


ENSEMBLE = "three_add_sub"
"""The ensemble of the case `ensemble`."""

_BRIEFLY = ("-p", "500", "-s", "900", "-r", "3")
_PATIENCE = 60.0
"""Seconds after which a mode counts as hanging."""

_SHARED = ("--shared-memory", "system", "--output-shared-memory-size", "4096")
_COUNTED = ("--measurement-mode", "count_windows")
_RATE = ("--request-rate-range", "200")
_SEQUENCES = ("--sequence-length", "20")
_IDS = ("--sequence-id-range", "1000:2000")
_OUT_OF_ORDER = "must specify the START flag on the first request of the sequence"
_OVERLAPPING = ("--num-of-sequences", "8")
"""Requests of a sequence do not wait for each other: perf_analyzer sends them in any order until its gRPC channel is
connected, and over HTTP on several connections. The server refuses what comes before the START of its sequence."""
_SERIAL = ("--num-of-sequences", "8", "--serial-sequences")
_FILES = ("-f", "{folder}/{protocol}.csv", "--profile-export-file", "{folder}/{protocol}.json")
_COUNTS = {"data": [{"COUNT": [5], "SIZE": [64]}]}


def modes() -> list[Mode]:
    """Every mode: how requests are sent, how often, with which tensors, and where these lie."""
    modes = []
    for protocol in ("http", "grpc"):
        modes += [
            Mode(f"{protocol} sync", protocol, ("--sync", "--concurrency-range", "2")),
            Mode(f"{protocol} async", protocol, ("--async", "--concurrency-range", "16")),
            Mode(f"{protocol} concurrency range", protocol, ("--concurrency-range", "1:3:2")),
            Mode(f"{protocol} batch of 8", protocol, ("-b", "8", "--concurrency-range", "4")),
            Mode(f"{protocol} request rate", protocol, _RATE),
            Mode(f"{protocol} request rate, Poisson", protocol, (*_RATE, "--request-distribution", "poisson")),
            Mode(f"{protocol} request rate, async", protocol, (*_RATE, "--async")),
            Mode(f"{protocol} request intervals", protocol, ("--request-intervals", "{folder}/intervals")),
            Mode(f"{protocol} system shared memory, sync", protocol, ("--sync", *_SHARED)),
            Mode(
                f"{protocol} system shared memory, async", protocol, ("--async", *_SHARED, "--concurrency-range", "8")
            ),
            Mode(f"{protocol} system shared memory, request rate", protocol, (*_RATE, *_SHARED)),
            Mode(f"{protocol} count windows", protocol, _COUNTED),
            Mode(f"{protocol} percentile", protocol, ("--percentile", "99")),
            Mode(f"{protocol} version", protocol, ("-x", "1")),
            Mode(f"{protocol} zeros", protocol, ("--input-data", "zero")),
            Mode(f"{protocol} variable shape", protocol, ("--shape", "INPUT0:1000"), "identity"),
            Mode(f"{protocol} large tensors", protocol, ("--shape", "INPUT0:100000", *_COUNTED), "identity"),
            Mode(
                f"{protocol} metrics", protocol, ("--collect-metrics", "--metrics-url", "localhost:{metrics}/metrics")
            ),
            Mode(
                f"{protocol} binary search", protocol, ("--binary-search", "--concurrency-range", "1:4", "-l", "1000")
            ),
            Mode(f"{protocol} trace settings", protocol, ("--trace-level", "OFF", "--trace-rate", "500")),
            Mode(f"{protocol} report and profile", protocol, _FILES),
        ]
    return [*modes, *_only_http(), *_only_grpc(), *_of_sequences(), *_of_ensembles()]


def _only_http() -> list[Mode]:
    formats = [(taken, each) for taken in ("binary", "json") for each in ("binary", "json")]
    return [
        Mode(
            f"http {taken} in, {each} out",
            "http",
            ("--input-tensor-format", taken, "--output-tensor-format", each, "--concurrency-range", "4"),
        )
        for taken, each in formats
    ]


def _only_grpc() -> list[Mode]:
    streaming = ("--streaming", "--async")
    compressions = [
        Mode(f"grpc {name}", "grpc", ("--grpc-compression-algorithm", name)) for name in ("gzip", "deflate")
    ]
    return [
        Mode("grpc streaming", "grpc", (*streaming, "--concurrency-range", "4")),
        Mode("grpc streaming, request rate", "grpc", (*streaming, *_RATE)),
        Mode("grpc streaming, system shared memory", "grpc", (*streaming, *_SHARED)),
        Mode("grpc streaming, decoupled", "grpc", (*streaming, "--input-data", "{folder}/counts.json"), "stream"),
        *compressions,
    ]


def _of_sequences() -> list[Mode]:
    """Several sequences at once, with each strategy; the model fails where a sequence comes out of order."""
    modes = []
    for model, strategy in (("accumulator_direct", "direct"), ("accumulator_oldest", "oldest")):
        for protocol in ("http", "grpc"):
            start = f"{protocol} sequences, {strategy}"
            modes += [
                Mode(f"{start}, sync", protocol, ("--sync", "--concurrency-range", "8", *_SEQUENCES), model),
                Mode(f"{start}, async", protocol, ("--async", "--concurrency-range", "16", *_SEQUENCES), model),
                Mode(f"{start}, ids in a range", protocol, (*_IDS, "--concurrency-range", "4", *_SEQUENCES), model),
                Mode(f"{start}, request rate", protocol, (*_RATE, *_OVERLAPPING, *_SEQUENCES), model, tries=4),
                Mode(f"{start}, request rate, serial", protocol, (*_RATE, *_SERIAL, *_SEQUENCES), model),
            ]
        streaming = ("--streaming", "--async")
        modes += [
            Mode(f"grpc sequences, {strategy}, streaming", "grpc", (*streaming, *_IDS, *_SEQUENCES), model),
            Mode(f"grpc sequences, {strategy}, streaming, rate", "grpc", (*streaming, *_RATE, *_SERIAL), model),
        ]
    return modes


def _of_ensembles() -> list[Mode]:
    """Requests that go through three models."""
    modes = []
    for protocol in ("http", "grpc"):
        modes += [
            Mode(f"{protocol} ensemble, sync", protocol, ("--sync", "--concurrency-range", "4"), ENSEMBLE),
            Mode(f"{protocol} ensemble, async", protocol, ("--async", "--concurrency-range", "16"), ENSEMBLE),
            Mode(f"{protocol} ensemble, batch of 8", protocol, ("-b", "8", "--concurrency-range", "4"), ENSEMBLE),
            Mode(f"{protocol} ensemble, request rate", protocol, _RATE, ENSEMBLE),
            Mode(f"{protocol} ensemble, system shared memory", protocol, _SHARED, ENSEMBLE),
        ]
    streaming = ("--streaming", "--async", "--concurrency-range", "4")
    return [*modes, Mode("grpc ensemble, streaming", "grpc", streaming, ENSEMBLE)]


def main() -> int:
    arguments = _arguments()
    peer, why = find_peer()
    analyzer = perf_analyzer(peer, quick=True)
    if analyzer is None or (arguments.peer and peer is None):
        print(f"perf_analyzer was not found: {why}; PERF_ANALYZER names it too", file=sys.stderr)
        return 0
    chosen = [mode for mode in modes() if fnmatchcase(mode.name, arguments.pattern)]
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        _write_files(folder)
        built = ensemble.built(folder / "ensembles")
        more = tuple(f"--model-repository={each}" for each in (SEQUENCE_MODELS, built))
        ours = Naiad().serve(MODELS, *more, "--allow-client-shm=true")
        running = stack.enter_context(peer.serve(MODELS, *more) if arguments.peer and peer else ours)
        failed = [mode.name for mode in chosen if not _works(analyzer, running, mode, folder)]
    print(f"\n{len(chosen) - len(failed)} of {len(chosen)} modes work")
    return 1 if failed else 0


def _works(analyzer: PerfAnalyzer, running: Running, mode: Mode, folder: Path) -> bool:
    for further in reversed(range(mode.tries)):
        try:
            load = _load(analyzer, running, mode, folder)
        except LoadError as error:
            again = further > 0 and _OUT_OF_ORDER in str(error)
            print(f"{'again' if again else 'FAIL'}  {mode.name}: {error}", flush=True)
            if not again:
                return False
        else:
            reached = f"{load.per_second:,.0f} inferences/s, p99 {load.p99_milliseconds:.2f} ms"
            print(f"pass  {mode.name}: {reached}", flush=True)
            return True
    return False


def _load(analyzer: PerfAnalyzer, running: Running, mode: Mode, folder: Path) -> Load:
    """What that mode reached. Raises LoadError where the program fails or measures nothing."""
    values = {"folder": folder, "metrics": running.ports.metrics, "protocol": mode.protocol}
    port = running.ports.http if mode.protocol == "http" else running.ports.grpc
    if analyzer.of_peer:
        where = ["load", mode.protocol, str(port), mode.model]
    else:
        where = ["-i", mode.protocol, "-u", f"localhost:{port}", "-m", mode.model]
    options = [option.format_map(values) for option in mode.options]
    command = [*analyzer.command, *where, *_BRIEFLY, *options]
    try:
        ended = subprocess.run(command, capture_output=True, text=True, timeout=_PATIENCE)
    except subprocess.TimeoutExpired as error:
        raise LoadError(f"it did not end within {_PATIENCE:g} s") from error
    text = ended.stdout + ended.stderr
    if ended.returncode:
        raise LoadError(" ".join(text.split())[-300:])
    return read_perf_analyzer(text)


def _write_files(folder: Path) -> None:
    (folder / "intervals").write_text("5000\n" * 100)
    (folder / "counts.json").write_text(json.dumps(_COUNTS))


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("pattern", nargs="?", default="*", help="names of modes, as 'grpc *' (default: all)")
    parser.add_argument("--peer", action="store_true", help="run them against the peer, to see which it can")
    return parser.parse_args()


if __name__ == "__main__":
    raise SystemExit(main())
