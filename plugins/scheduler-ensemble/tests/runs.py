"""Values that have nothing but a name and a shape, and a driver that answers steps."""

from collections.abc import Mapping
from dataclasses import dataclass

from naiad_scheduler_ensemble.moves import Moves, StepStart
from naiad_scheduler_ensemble.run import Run


@dataclass(frozen=True)
class Named:
    """Stands for a tensor."""

    name: str
    shape: tuple[int, ...] = (4,)


def values(*names: str) -> dict[str, Named]:
    """One value a name."""
    return {name: Named(name) for name in names}


def texts_of(tensors: Mapping[str, Named]) -> dict[str, str]:
    """The text of each value by tensor name."""
    return {name: value.name for name, value in tensors.items()}


def started(moves: Moves) -> list[int]:
    """The steps that are to be started."""
    return [start.step for start in moves.starts]


def answer(run: Run, start: StepStart, *names: str, final: bool = True) -> Moves:
    """The step has answered with these outputs, each value named `step.output`."""
    return run.answered(start, {name: Named(f"{start.step}.{name}") for name in names}, final)
