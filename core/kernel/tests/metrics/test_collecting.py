"""What of all metrics is collected for whom."""

from naiad._kernel.metrics.collector import Metrics
from naiad._kernel.metrics.options import MetricsConfig
from naiad._kernel.metrics.series import MetricStore


def test_the_metrics_of_models_are_collected_without_a_look_at_the_models() -> None:
    store = MetricStore()
    family = store.family("blocks", "Blocks of the cache", "gauge")
    store.series(family, (("model", "m"),), ())
    looked_at: list[str] = []
    metrics = Metrics(MetricsConfig(), lambda: looked_at.append("models") or (), store)  # type: ignore[func-returns-value]

    families = metrics.collect_made_by_models()

    assert ([each.name for each in families], looked_at) == (["blocks"], [])
