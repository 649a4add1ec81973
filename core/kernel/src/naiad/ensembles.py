"""The contract of an ensemble: how the models of its steps are composed, and what each request to it does next.

Everything here is deterministic and knows no clock, no loop and no tensor's content. The kernel drives it: it submits
the steps, tells what came back, and hands out the responses. A value is whatever stands for a tensor; all that is
looked at is its shape.
"""

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, runtime_checkable

from naiad.scheduler import SchedulerFactory
from naiad_config import ModelConfig


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
    outputs that are wanted of it, () all. `flags` override the request's own. `iteration` is for whoever made this.
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

    `flags` are what the steps behind them said of the sequence.
    """

    outputs: Mapping[str, Any]
    shapes: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    final: bool = True
    flags: SequenceFlags | None = None


@dataclass(slots=True, eq=False)
class Moves:
    """What to do now, in this order: submit steps, then answer. With a `failure` the request fails with that text."""

    starts: Sequence[StepStart] = ()
    responses: Sequence[EnsembleResponse] = ()
    failure: str = ""


class EnsembleRun(Protocol):
    """One request to an ensemble, from its first steps to its last response."""

    def begin(self) -> Moves:
        """What to do first; called once."""
        ...

    def answered(
        self, start: StepStart, outputs: Mapping[str, Any], final: bool, flags: SequenceFlags | None = None
    ) -> Moves:
        """A step that was started has responded, with these values by the names of its model's outputs."""
        ...


class Backpressure(Protocol):
    """How many requests of one ensemble may wait or run at each step, over all requests to the ensemble."""

    def enter(self, step: int, request: Hashable) -> bool:
        """Whether a step's request may be submitted now; otherwise it waits for those before it."""
        ...

    def leave(self, step: int) -> Any:
        """A submitted request of the step is over. The one that may be submitted in its place, or None."""
        ...

    def forget(self, step: int, request: Hashable) -> None:
        """That request need not wait any more."""
        ...


@dataclass(frozen=True, slots=True)
class ComposedStep:
    """A step as the kernel needs it: its model, the version (0 for the latest), and which outputs are whose.

    `outputs` maps the ensemble's outputs that come from this step to the names of its model's outputs. `behind` are the
    decoupled steps that it runs behind: they must wait when it cannot take more.
    """

    model: str
    version: int
    outputs: Mapping[str, str]
    behind: tuple[int, ...] = ()


class Composition(Protocol):
    """An ensemble whose models fit together. `decoupled` says that a request may get any number of responses."""

    steps: Sequence[ComposedStep]
    decoupled: bool

    def run(self, inputs: Mapping[str, Any], requested: tuple[str, ...]) -> EnsembleRun:
        """A request with these values by the ensemble's input names; `requested` names outputs, () all."""
        ...

    def backpressure(self) -> Backpressure | None:
        """What holds the steps back, None when nothing does."""
        ...


@runtime_checkable
class EnsembleFactory(SchedulerFactory, Protocol):
    """What serves `ensemble_scheduling`: it makes no scheduler, but a composition of the models of the steps."""

    def compose(self, config: ModelConfig, models: Sequence[ModelConfig]) -> Composition:
        """The ensemble over these models, one for each step. Raises ConfigError with all that does not fit together."""
        ...
