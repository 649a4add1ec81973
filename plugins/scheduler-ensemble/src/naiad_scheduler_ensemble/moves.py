"""Moves of a run: the steps to submit and the responses to send next.

A `Run` decides it, deterministically, without a clock, a loop or the content of a tensor; `EnsembleCall` does it. A
value stands for a tensor; all that is looked at is its shape.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol


class Value(Protocol):
    """What stands for a tensor: its shape, with the batch dimension where there is one."""

    @property
    def shape(self) -> tuple[int, ...]:
        """Its sizes."""
        ...


@dataclass(frozen=True, slots=True)
class SequenceFlags:
    """What a step said of the sequence in the parameters of its response; None leaves the request's own as it is."""

    correlation_id: int | str | None = None
    start: bool | None = None
    end: bool | None = None


@dataclass(slots=True, eq=False)
class StepStart:
    """Submit that step of the ensemble now.

    `inputs` are by the names of the step's model; those in `shapes` are given to it in that shape. `requested` are the
    outputs that are wanted of it, () all. `flags` override the request's own. `iteration` is the run's own.
    """

    step: int
    inputs: Mapping[str, Any]
    requested: tuple[str, ...] = ()
    shapes: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    flags: SequenceFlags | None = None
    iteration: Any = None


@dataclass(slots=True, eq=False)
class EnsembleResponse:
    """Answer the request with these values by the ensemble's output names; those in `shapes` in that shape.

    `flags` are what the steps behind them said of the sequence. One that is not `explicit` only ends the request.
    """

    outputs: Mapping[str, Any]
    shapes: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    final: bool = True
    flags: SequenceFlags | None = None
    explicit: bool = True


@dataclass(slots=True, eq=False)
class Moves:
    """What to do now, in this order: submit steps, then answer. With a `failure` the request fails with that text."""

    starts: Sequence[StepStart] = ()
    responses: Sequence[EnsembleResponse] = ()
    failure: str = ""
