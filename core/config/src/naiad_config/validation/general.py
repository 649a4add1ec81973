"""Rules for the model as a whole: sizes, versions, platform, cache and metrics."""

from collections.abc import Iterator

from naiad_config.errors import Problem
from naiad_config.model import MetricControl, ModelConfig
from naiad_config.paths import element

_SCHEDULERS = ("dynamic_batching", "sequence_batching", "ensemble_scheduling")


def problems(config: ModelConfig) -> Iterator[Problem]:
    """What is wrong in the general settings."""
    if config.max_batch_size < 0:
        message = f"'max_batch_size' must be non-negative value for {config.name}, not {config.max_batch_size}"
        yield Problem(message, "max_batch_size", hint="0 means that the model has no batch dimension")
    chosen = [name for name in _SCHEDULERS if getattr(config, name) is not None]
    if len(chosen) > 1:
        text_shown = " and ".join(f"'{name}'" for name in chosen)
        yield Problem(f"{text_shown} exclude each other", chosen[1], hint="keep one of them")
    yield from _versions(config)
    yield from _cache(config)
    yield from _metrics(config)


def missing(config: ModelConfig) -> Iterator[Problem]:
    """What a complete configuration must have."""
    if not config.platform and not config.backend:
        yield Problem(f"must specify 'platform' or 'backend' for {config.name}", "backend")


def _versions(config: ModelConfig) -> Iterator[Problem]:
    policy = config.version_policy
    if policy is None or policy.specific is None:
        return
    path = "version_policy.specific.versions"
    if not policy.specific.versions:
        yield Problem("no version is listed, so none would be served", path, hint="list versions, or use all { }")
    for index, version in enumerate(policy.specific.versions):
        if version < 1:
            yield Problem(f"version {version} cannot exist", element(path, index), hint="versions count from 1")


def _cache(config: ModelConfig) -> Iterator[Problem]:
    if config.response_cache is None or not config.response_cache.enable:
        return
    reasons = []
    if config.sequence_batching is not None:
        reasons.append("sequence batching scheduler")
    if config.model_transaction_policy is not None and config.model_transaction_policy.decoupled:
        reasons.append("'decoupled' transaction policy")
    for reason in reasons:
        message = f"Response Cache does not currently support model {config.name} with {reason}"
        yield Problem(message, "response_cache.enable", hint="Please disable the response cache")


def _metrics(config: ModelConfig) -> Iterator[Problem]:
    controls = config.model_metrics.metric_control if config.model_metrics is not None else ()
    for index, control in enumerate(controls):
        path = element("model_metrics.metric_control", index)
        yield from _identifier(control, path)
        if control.histogram_options is None:
            yield Problem("metric control must specify 'histogram_options'", path)
        elif not control.histogram_options.buckets:
            message = "histogram options must specify non-empty 'buckets'"
            yield Problem(message, f"{path}.histogram_options", hint="list the upper bounds of the buckets, ascending")


def _identifier(control: MetricControl, path: str) -> Iterator[Problem]:
    if control.metric_identifier is None:
        yield Problem("metric control must specify 'metric_identifier'", path)
    elif not control.metric_identifier.family:
        yield Problem("metric identifier must specify non-empty 'family'", f"{path}.metric_identifier")
