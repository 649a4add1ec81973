"""The context that models in Python get: that of every backend, with their own metrics and calls to other models."""

from dataclasses import dataclass, fields

from naiad.backend import ModelContext
from naiad_kit.calls import ModelCalls, models_of
from naiad_kit.metrics import MetricRegistry
from naiad_kit.model_metrics import registry_of


@dataclass(frozen=True, slots=True, kw_only=True)
class PythonContext(ModelContext):
    """`metrics` makes the model's own metrics, and `models` calls other models.

    No page shows the metrics without naiad-metrics; no call is possible without naiad-model-calls.
    """

    metrics: MetricRegistry
    models: ModelCalls


def python_context(context: ModelContext) -> PythonContext:
    """The context of a model version for its Python code."""
    values = {field.name: getattr(context, field.name) for field in fields(ModelContext)}
    return PythonContext(**values, metrics=registry_of(context), models=models_of(context))
