"""Short measurements of Naiad and the peer by turns, with both of them running, for a machine whose speed changes.

The cases of `run.py` measure one server for some minutes, and then the other. Where a virtual machine is twice as fast
in one minute as in the next, their ratios tell of the machine. Here each measurement of one server is followed by one
of the other, and the median of the ratios of these pairs is what counts.
"""

import argparse
import sys
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from statistics import median, quantiles

from cases import grpc_small, isolated, onnx_small
from load import PerfAnalyzer, perf_analyzer
from report import Goal, refresh
from rounds import MODELS
from run import RESULTS, machine
from servers import WORK, Naiad, Running, find_peer

_HEAD = (
    "| measured | Naiad: median | the peer: median | ratio: median (middle half) | processor time, µs | goal | met |"
)


@dataclass(frozen=True, slots=True)
class Traffic:
    """One row: what perf_analyzer sends, and the ratio to reach."""

    label: str
    protocol: str
    model: str
    concurrency: int
    least: float
    options: tuple[str, ...] = ()


def _small(protocol: str, goals: dict[int, float]) -> list[Traffic]:
    options = ("--max-threads", "8") if protocol == "grpc" else ()
    return [Traffic(f"concurrency {each}", protocol, "add_sub", each, least, options) for each, least in goals.items()]


def _large() -> list[Traffic]:
    return [
        Traffic(label, "http", "identity", concurrency, least, ("--shape", f"INPUT0:{elements}"))
        for label, elements, concurrency, least in isolated.LARGE
    ]


GROUPS = {
    "grpc": ("gRPC, Python model", _small("grpc", grpc_small.GOALS)),
    "onnx-http": ("HTTP, ONNX model", _small("http", onnx_small.GOALS["HTTP"])),
    "onnx-grpc": ("gRPC, ONNX model", _small("grpc", onnx_small.GOALS["gRPC"])),
    "isolated": ("HTTP, isolated Python model", [*_small("http", isolated.SMALL), *_large()]),
}
"""Rows by group, with the title of each group; the goals are those of the cases."""


def main() -> int:
    arguments = _arguments()
    peer, why = find_peer()
    generator = perf_analyzer(peer, quick=True)
    if peer is None or generator is None:
        print(f"There is nothing to compare with: {why}.", file=sys.stderr)
        return 1
    lines = [_HEAD, "|---|---|---|---|---|---|---|"]
    for name in arguments.groups:
        title, rows = GROUPS[name]
        own, models, options = _repositories(name)
        with ExitStack() as stack:
            ours = stack.enter_context(Naiad().serve(own, *options))
            theirs = stack.enter_context(peer.serve(models))
            for each in rows:
                lines.append(_row(title, each, generator, (ours, theirs), arguments.pairs))
                print(lines[-1], flush=True)
    command = f"`python bench/pairs.py --pairs {arguments.pairs}`; {machine()}."
    section = f"## Naiad and the peer by turns\n\n{__doc__}\n" + "\n".join(lines) + f"\n\n{command}"
    if arguments.save:
        refresh(RESULTS, "pairs", section)
    return 0


def _repositories(group: str) -> tuple[Path, Path, Sequence[str]]:
    """The repository of Naiad, that of the peer, and Naiad's options."""
    if group.startswith("onnx"):
        return onnx_small.write_models(WORK / "onnx_small"), MODELS, ()
    if group == "isolated":
        repository = isolated.built(WORK / "isolated")
        return repository, repository, ("--isolation=process",)
    return MODELS, MODELS, ()


def _row(title: str, traffic: Traffic, generator: PerfAnalyzer, servers: tuple[Running, Running], pairs: int) -> str:
    rates: tuple[list[float], list[float]] = ([], [])
    before = [(each.inference_count(traffic.model), each.cpu_seconds()) for each in servers]
    for number in range(pairs):
        for index in (0, 1) if number % 2 == 0 else (1, 0):
            ports = servers[index].ports
            port = ports.http if traffic.protocol == "http" else ports.grpc
            measured = generator(port, traffic.model, traffic.concurrency, traffic.options, traffic.protocol)
            rates[index].append(measured.per_second)
    costs = [
        (each.cpu_seconds() - seconds) / (each.inference_count(traffic.model) - count) * 1e6
        for each, (count, seconds) in zip(servers, before, strict=True)
    ]
    ratios = [ours / theirs for ours, theirs in zip(*rates, strict=True)]
    low, middle, high = quantiles(ratios, n=4)
    goal = Goal(least=traffic.least, of_ratio=True)
    return (
        f"| {title}, {traffic.label} | {median(rates[0]):,.0f} | {median(rates[1]):,.0f} | "
        f"{middle:.2f} ({low:.2f}–{high:.2f}) | {costs[0]:.0f}, {costs[1]:.0f} | {goal} | {goal.met_by(middle)} |"
    )


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--groups", nargs="*", choices=[*GROUPS], default=[*GROUPS], help="what to measure")
    parser.add_argument("--pairs", type=int, default=8, help="measurements of each server for each row")
    parser.add_argument("--save", action="store_true", help="put the table into RESULTS.md")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
