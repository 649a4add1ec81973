"""Short measurements of Naiad and the peer by turns, with both of them running, for a machine whose speed changes.

The cases of `run.py` measure one server for some minutes, and then the other. Where a virtual machine is twice as fast
in one minute as in the next, their ratios tell of the machine. Here each measurement of one server is followed by one
of the other, and the median of the ratios of these pairs is what counts.

Where others use the same cores, processor time is longer too: up to twice as long for the same work. So probes time a
fixed loop beside each measurement (`speed.py`), and the times at full speed are those measured, multiplied by the
share of the machine's best speed that the loop had meanwhile.
"""

import argparse
import datetime
import shlex
import sys
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from statistics import median, quantiles

from cases import grpc_small, isolated, large_tensors, onnx_small
from load import Load, PerfAnalyzer, perf_analyzer, with_cost
from report import Goal, refresh
from rounds import MODELS
from run import RESULTS, machine
from servers import WORK, Naiad, Running, find_peer
from speed import MachineSpeed

_HEAD = (
    "| measured | Naiad: median | the peer: median | ratio: median (middle half) | ratio at full speed | goal | met | "
    "processor time, µs | at full speed |"
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


@dataclass(frozen=True, slots=True)
class Sample:
    """One measurement: inferences/s, the server's processor time for each in µs, and the speed of the machine."""

    rate: float
    cost: float
    speed: float

    def at_full_speed(self, best: float) -> "Sample":
        """The same if the machine had had its best speed meanwhile."""
        share = self.speed / best
        return Sample(self.rate / share, self.cost * share, best)


@dataclass(frozen=True, slots=True)
class Row:
    """What was measured of some traffic: samples of Naiad and of the peer, pair by pair."""

    label: str
    goal: Goal
    pairs: tuple[tuple[Sample, Sample], ...]

    def text(self, best: float) -> str:
        """The row of the table; `best` is the best speed of the machine."""
        full = [(ours.at_full_speed(best), theirs.at_full_speed(best)) for ours, theirs in self.pairs]
        low, middle, high = _ratios(self.pairs)
        ours, theirs = _medians(self.pairs, "rate")
        cells = [
            self.label,
            f"{ours:,.0f}",
            f"{theirs:,.0f}",
            f"{middle:.2f} ({low:.2f}–{high:.2f})",
            "{1:.2f} ({0:.2f}–{2:.2f})".format(*_ratios(full)),
            str(self.goal),
            self.goal.met_by(middle),
            "{:.0f}, {:.0f}".format(*_medians(self.pairs, "cost")),
            "{:.0f}, {:.0f}".format(*_medians(full, "cost")),
        ]
        return f"| {' | '.join(cells)} |"


def _ratios(pairs: Sequence[tuple[Sample, Sample]]) -> list[float]:
    """The quartiles of the ratios of rates."""
    return quantiles([ours.rate / theirs.rate for ours, theirs in pairs], n=4)


def _medians(pairs: Sequence[tuple[Sample, Sample]], what: str) -> tuple[float, float]:
    ours, theirs = zip(*((getattr(ours, what), getattr(theirs, what)) for ours, theirs in pairs), strict=True)
    return median(ours), median(theirs)


def _small(protocol: str, goals: dict[int, float]) -> list[Traffic]:
    options = ("--max-threads", "8") if protocol == "grpc" else ()
    return [Traffic(f"concurrency {each}", protocol, "add_sub", each, least, options) for each, least in goals.items()]


def _large() -> list[Traffic]:
    return [
        Traffic(label, "http", "identity", concurrency, least, ("--shape", f"INPUT0:{elements}"))
        for label, elements, concurrency, least in isolated.LARGE
    ]


def _large_over_grpc() -> list[Traffic]:
    return [
        Traffic(
            each.label, "grpc", "identity", each.concurrency, each.least["grpc"], ("--shape", f"INPUT0:{each.elements}")
        )
        for each in large_tensors.SIZES
    ]


GROUPS = {
    "grpc": ("gRPC, Python model", _small("grpc", grpc_small.GOALS)),
    "grpc-large": ("gRPC, Python model", _large_over_grpc()),
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
    rows: list[Row] = []
    with MachineSpeed() as machine_speed:
        for name in arguments.groups:
            title, traffics = GROUPS[name]
            own, models, options = _repositories(name)
            with ExitStack() as stack:
                ours = stack.enter_context(Naiad().serve(own, *options))
                theirs = stack.enter_context(peer.serve(models))
                for each in traffics:
                    rows.append(_measured(title, each, generator, (ours, theirs), arguments.pairs, machine_speed))
                    print(rows[-1].text(machine_speed.best), flush=True)
        lines = [_HEAD, "|---" * 9 + "|", *(each.text(machine_speed.best) for each in rows)]
    today = datetime.datetime.now(datetime.UTC).date()
    command = f"`{shlex.join(['python', 'bench/pairs.py', *sys.argv[1:]])}`; {today}, {machine()}."
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


def _measured(
    title: str,
    traffic: Traffic,
    generator: PerfAnalyzer,
    servers: tuple[Running, Running],
    pairs: int,
    machine_speed: MachineSpeed,
) -> Row:
    def sample(server: Running) -> Sample:
        port = server.ports.http if traffic.protocol == "http" else server.ports.grpc

        def load() -> Load:
            return generator(port, traffic.model, traffic.concurrency, traffic.options, traffic.protocol)

        before = machine_speed.mark()
        measured, cost = with_cost(server, traffic.model, load)
        return Sample(measured.per_second, cost, machine_speed.since(before))

    ours, theirs = servers
    measured = []
    for number in range(pairs):
        if number % 2:
            second, first = sample(theirs), sample(ours)
        else:
            first, second = sample(ours), sample(theirs)
        measured.append((first, second))
    return Row(f"{title}, {traffic.label}", Goal(least=traffic.least, of_ratio=True), tuple(measured))


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--groups", nargs="*", choices=[*GROUPS], default=[*GROUPS], help="what to measure")
    parser.add_argument("--pairs", type=int, default=8, help="measurements of each server for each row")
    parser.add_argument("--save", action="store_true", help="put the table into RESULTS.md")
    arguments = parser.parse_args()
    if arguments.pairs < 2:
        parser.error("--pairs must be 2 or more: the middle half needs two values")
    if arguments.save and len(set(arguments.groups)) < len(GROUPS):
        parser.error("--save replaces the whole table; leave --groups out")
    return arguments


if __name__ == "__main__":
    sys.exit(main())
