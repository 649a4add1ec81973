"""Rules for dynamic batching: preferred sizes, priority levels and queue policies."""

from collections.abc import Iterator

from naiad_config.errors import Problem
from naiad_config.model import ModelConfig
from naiad_config.paths import element, entry
from naiad_config.scheduling import ModelDynamicBatching, ModelQueuePolicy, TimeoutAction


def problems(config: ModelConfig) -> Iterator[Problem]:
    """What is wrong in `dynamic_batching`."""
    batching = config.dynamic_batching
    if batching is None:
        return
    yield from preferred_sizes(
        "dynamic batching preferred size",
        batching.preferred_batch_size,
        "dynamic_batching.preferred_batch_size",
        config,
    )
    yield from _levels(batching, config.name)
    yield from _ordering(batching, config.name)


def preferred_sizes(what: str, sizes: tuple[int, ...], path: str, config: ModelConfig) -> Iterator[Problem]:
    """What is wrong in a list of preferred batch sizes, which two schedulers have."""
    for index, size in enumerate(sizes):
        if size < 1:
            message = f"{what} must be positive for {config.name}, not {size}"
            yield Problem(message, element(path, index))
        elif size > config.max_batch_size > 0:
            message = f"{what} must be <= max batch size for {config.name}: {size} > {config.max_batch_size}"
            yield Problem(message, element(path, index), hint="raise max_batch_size, or prefer smaller batches")


def sizes_without_batching(config: ModelConfig) -> Iterator[Problem]:
    """Preferred batch sizes of a complete model that has no batch dimension."""
    if config.max_batch_size > 0:
        return
    oldest = config.sequence_batching.oldest if config.sequence_batching is not None else None
    reason = "must be <= max batch size"
    hint = "set max_batch_size when the model has a batch dimension, else leave the sizes out"
    if config.dynamic_batching is not None and config.dynamic_batching.preferred_batch_size:
        message = f"dynamic batching preferred size {reason} for {config.name}, which is 0"
        yield Problem(message, "dynamic_batching.preferred_batch_size", hint=hint)
    if oldest is not None and oldest.preferred_batch_size:
        message = f"sequence batching preferred batch size {reason} for {config.name}, which is 0"
        yield Problem(message, "sequence_batching.oldest.preferred_batch_size", hint=hint)


def _levels(batching: ModelDynamicBatching, name: str) -> Iterator[Problem]:
    levels = batching.priority_levels
    if levels == 0:
        return
    if not 1 <= batching.default_priority_level <= levels:
        message = f"default priority level must be in range [1, {levels}] for {name}"
        hint = "it is the level of requests that name none"
        actual = f", not {batching.default_priority_level}" if batching.default_priority_level else ""
        yield Problem(f"{message}{actual}", "dynamic_batching.default_priority_level", hint=hint)
    for level in batching.priority_queue_policy:
        if not 1 <= level <= levels:
            message = f"priority queue policy must have priority level in range [1, {levels}] for {name}, not {level}"
            yield Problem(message, entry("dynamic_batching.priority_queue_policy", level))


def _ordering(batching: ModelDynamicBatching, name: str) -> Iterator[Problem]:
    if not batching.preserve_ordering:
        return
    if batching.priority_levels > 1:
        message = f"Only one priority level is allowed when 'preserve_ordering' is true for {name}"
        yield Problem(message, "dynamic_batching.priority_levels", hint="drop one of the two")
    if batching.default_queue_policy is not None:
        yield from _delaying(batching.default_queue_policy, "dynamic_batching.default_queue_policy", name)
    for level, policy in batching.priority_queue_policy.items():
        yield from _delaying(policy, entry("dynamic_batching.priority_queue_policy", level), name)


def _delaying(policy: ModelQueuePolicy, path: str, name: str) -> Iterator[Problem]:
    may_expire = policy.default_timeout_microseconds or policy.allow_timeout_override
    if policy.timeout_action is TimeoutAction.DELAY and may_expire:
        message = f"Queue policy can not have DELAY as timeout action when 'preserve_ordering' is true for {name}"
        yield Problem(message, f"{path}.timeout_action", hint="use REJECT, or give up the order")
