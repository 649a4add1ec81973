"""The composition of an ensemble: graph, shapes and plans, made from its configuration and those of its models."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from naiad.errors import ConfigError
from naiad_config import ModelConfig
from naiad_scheduler_ensemble.graph import Graph, graph_of, steps_of
from naiad_scheduler_ensemble.inflight import Inflight
from naiad_scheduler_ensemble.plan import Plan, plan_for
from naiad_scheduler_ensemble.rules import problems
from naiad_scheduler_ensemble.run import Run

_MOST_PLANS = 256
"""The most sets of requested outputs whose plans are kept, so that clients cannot fill the memory with new sets."""


@dataclass(frozen=True, slots=True)
class ComposedStep:
    """One step: its model, the version (0 for the latest), and which outputs of the ensemble are whose.

    `outputs` maps the ensemble's outputs that come from this step to the names of its model's outputs. `behind` are the
    decoupled steps that it runs behind: they must wait when it cannot take more.
    """

    model: str
    version: int
    outputs: Mapping[str, str]
    behind: tuple[int, ...] = ()


def compose(config: ModelConfig, models: Sequence[ModelConfig]) -> "EnsembleComposition":
    """The ensemble over these models, one for each step. Raises ConfigError with all that does not fit together."""
    invalid = list(problems(config, models))
    if invalid:
        raise ConfigError(invalid)
    return EnsembleComposition(config, models)


class EnsembleComposition:
    """An ensemble whose models fit together.

    `decoupled` says that a request may get any number of responses; `max_inflight_requests` 0 is no limit.
    """

    def __init__(self, config: ModelConfig, models: Sequence[ModelConfig]) -> None:
        graph = self._graph = graph_of(config, models)
        self.decoupled = any(node.decoupled for node in graph.nodes)
        self.steps = tuple(
            ComposedStep(
                model=step.model_name,
                version=max(0, step.model_version),
                outputs=_outputs_of(graph, index),
                behind=tuple(graph.around(graph.nodes[index].scope)[:-1]),
            )
            for index, step in enumerate(steps_of(config))
        )
        self.max_inflight_requests = (
            config.ensemble_scheduling.max_inflight_requests if config.ensemble_scheduling is not None else 0
        )
        self._plans: dict[tuple[str, ...], Plan] = {}

    def run(self, inputs: Mapping[str, Any], requested: tuple[str, ...]) -> Run:
        """A request with these values by the ensemble's input names; `requested` names outputs, () all."""
        plan = self._plans.get(requested)
        if plan is None:
            plan = plan_for(self._graph, requested)
            if len(self._plans) < _MOST_PLANS:
                self._plans[requested] = plan
        return Run(plan, inputs, self.decoupled)

    def backpressure(self) -> Inflight | None:
        """What keeps to `max_inflight_requests`, None without it."""
        return Inflight(self.max_inflight_requests, len(self.steps)) if self.max_inflight_requests else None


def _outputs_of(graph: Graph, index: int) -> dict[str, str]:
    return {tensor: name for name, tensor in graph.nodes[index].writes if tensor in graph.outputs}
