"""Makes the composition of an ensemble from its configuration and those of its models."""

from collections.abc import Mapping, Sequence
from typing import Any

from naiad.ensembles import ComposedStep
from naiad.errors import ConfigError, InvalidArgumentError
from naiad.scheduler import Scheduler
from naiad_config import ModelConfig
from naiad_scheduler_ensemble.graph import Graph, graph_of, steps_of
from naiad_scheduler_ensemble.inflight import Inflight
from naiad_scheduler_ensemble.plan import Plan, plan_for
from naiad_scheduler_ensemble.rules import problems
from naiad_scheduler_ensemble.run import Run

_MOST_PLANS = 256
"""So many sets of requested outputs have their plan kept: a client must not fill the memory by asking for odd ones."""


class EnsembleScheduling:
    """The factory for `ensemble_scheduling { … }`."""

    name = "ensemble"
    choice = "ensemble_scheduling"

    def create(self, config: ModelConfig, instances: int) -> Scheduler:
        """Refused with InvalidArgumentError: an ensemble has neither instances nor a queue."""
        raise InvalidArgumentError(
            f"model '{config.name}' asks for the scheduler 'ensemble', which only composes models; "
            "set platform to 'ensemble', or choose another scheduler"
        )

    def compose(self, config: ModelConfig, models: Sequence[ModelConfig]) -> "EnsembleComposition":
        """The ensemble over these models, one for each step. Raises ConfigError with all that does not fit together."""
        found = list(problems(config, models))
        if found:
            raise ConfigError(found)
        return EnsembleComposition(config, models)


class EnsembleComposition:
    """An ensemble whose models fit together."""

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
        self._limit = config.ensemble_scheduling.max_inflight_requests if config.ensemble_scheduling is not None else 0
        self._plans: dict[tuple[str, ...], Plan] = {}

    def run(self, inputs: Mapping[str, Any], requested: tuple[str, ...]) -> Run:
        """A request with these values by the ensemble's input names."""
        plan = self._plans.get(requested)
        if plan is None:
            plan = plan_for(self._graph, requested)
            if len(self._plans) < _MOST_PLANS:
                self._plans[requested] = plan
        return Run(plan, inputs, self.decoupled)

    def backpressure(self) -> Inflight | None:
        """What keeps to `max_inflight_requests`, None without it."""
        return Inflight(self._limit, len(self.steps)) if self._limit else None


def _outputs_of(graph: Graph, index: int) -> dict[str, str]:
    return {tensor: name for name, tensor in graph.nodes[index].writes if tensor in graph.outputs}
