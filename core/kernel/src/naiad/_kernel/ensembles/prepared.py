"""An ensemble that was read and checked, and waits for the models of its steps."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from naiad._kernel.caching.serving import CacheFront
from naiad._kernel.configs import WrittenConfig
from naiad._kernel.metrics.latencies import LatencyPlan
from naiad._kernel.stages import OfferedStages
from naiad.backend import ModelContext
from naiad.ensembles import EnsembleFactory
from naiad_config import EnsembleStep, ModelConfig


@dataclass(frozen=True, slots=True, eq=False)
class PreparedEnsemble:
    """An ensemble with a context for each version to serve; `written` tells where its keys stand.

    `labels` are those of the ensemble's own files; `plan` says which latencies are kept; `front` makes what stands
    before a version of it where answers are cached; `stages` gives the request stages of a version.
    """

    contexts: tuple[ModelContext, ...]
    written: WrittenConfig
    factory: EnsembleFactory
    labels: Mapping[str, tuple[str, ...]]
    plan: LatencyPlan | None
    front: Callable[[int], CacheFront | None]
    stages: Callable[[ModelContext], OfferedStages]

    @property
    def config(self) -> ModelConfig:
        """The configuration, the same for every version."""
        return self.contexts[-1].config

    @property
    def steps(self) -> tuple[EnsembleStep, ...]:
        """The steps as they are configured."""
        scheduling = self.config.ensemble_scheduling
        return scheduling.step if scheduling is not None else ()

    @property
    def dependencies(self) -> tuple[str, ...]:
        """The models of the steps, each once."""
        return tuple(dict.fromkeys(step.model_name for step in self.steps))

    def warn_of_namespaces(self) -> None:
        """Say in the log which steps name a namespace; Triton passes over it as well where it has no namespaces."""
        for index, step in enumerate(self.steps):
            if step.model_namespace:
                self.contexts[-1].logger.warning(
                    "ensemble '%s' step %d: model_namespace '%s' changes nothing, there are no namespaces; the step is "
                    "the model '%s' of whichever repository has it, so leave model_namespace out",
                    self.config.name,
                    index,
                    step.model_namespace,
                    step.model_name,
                )
