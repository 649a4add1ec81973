"""A run of the benchmark, and the loop over rounds and servers that most cases share."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from load import Generator, LoadError
from report import Goal, Row
from servers import Naiad, Peer, Running

MODELS = Path(__file__).resolve().parent / "models"
"""The repository of Python models that both servers can serve."""

SEQUENCE_MODELS = MODELS.with_name("sequence_models")
"""Another one, of models of sequences: each keeps the sums of its sequences itself."""

Numbers = Mapping[str, float]
"""What one round of one server gave, by label."""


@dataclass(frozen=True, slots=True)
class Run:
    """How to measure: so many rounds, `quick` for short ones; the peer and perf_analyzer where they are set up.

    The peer may be another commit of Naiad, which gets the same options and models.
    """

    rounds: int
    quick: bool
    peer: Naiad | Peer | None
    perf_analyzer: Generator | None

    @property
    def generator(self) -> Generator:
        """The perf_analyzer. Raises LoadError where there is none."""
        if self.perf_analyzer is None:
            raise LoadError("perf_analyzer was not found: set the peer up, or name the program in PERF_ANALYZER")
        return self.perf_analyzer


@dataclass(frozen=True, slots=True)
class SideBySide:
    """Both servers' numbers by label, one a round; the peer's are empty where it was not measured."""

    naiad: dict[str, tuple[float, ...]]
    peer: dict[str, tuple[float, ...]]

    def rows(self, goals: Mapping[str, Goal]) -> list[Row]:
        """A row for each label, with its goal where it has one."""
        return [Row(label, values, self.peer.get(label, ()), goals.get(label)) for label, values in self.naiad.items()]


def side_by_side(
    run: Run,
    measure: Callable[[Running], Numbers],
    rounds: int = 0,
    options: Sequence[str] = (),
    models: Path = MODELS,
    own: Path | None = None,
) -> SideBySide:
    """Start each server anew in each round and measure it; `options` and the repository `own` are for Naiad alone.

    The two take turns in going first, so that a machine that slows down on the way favours neither.
    """
    servers: list[Naiad | Peer] = [Naiad()] if run.peer is None else [Naiad(), run.peer]
    seen: dict[str, list[Numbers]] = {server.name: [] for server in servers}
    for number in range(rounds or run.rounds):
        for server in servers if number % 2 == 0 else reversed(servers):
            ours = isinstance(server, Naiad)
            with server.serve(own or models if ours else models, *(options if ours else ())) as running:
                seen[server.name].append(measure(running))
    return SideBySide(by_label(seen["Naiad"]), by_label(seen[run.peer.name] if run.peer else []))


def by_label(rounds: list[Numbers]) -> dict[str, tuple[float, ...]]:
    """The numbers of several rounds, label by label."""
    return {label: tuple(numbers[label] for numbers in rounds) for label in (rounds[0] if rounds else ())}
