"""Factory of the dynamic batcher: reads `dynamic_batching` of a model configuration."""

from naiad.errors import InvalidArgumentError
from naiad_config import ModelConfig, ModelDynamicBatching, ModelQueuePolicy
from naiad_scheduler_dynamic.fifo import Fifo
from naiad_scheduler_dynamic.policies import PolicyQueue
from naiad_scheduler_dynamic.scheduler import DynamicScheduler


class DynamicBatching:
    """The factory for `dynamic_batching { … }`, also chosen by name with the model parameter `scheduler`."""

    name = "dynamic"
    choice = "dynamic_batching"

    def create(self, config: ModelConfig, instances: int) -> DynamicScheduler:
        """A dynamic batcher for one model version; `instances` does not change what it does.

        A model without batching (`max_batch_size` 0) gets its requests one at a time. Raises InvalidArgumentError for
        a preferred batch size that no batch of this model can have.
        """
        settings = config.dynamic_batching or ModelDynamicBatching()
        max_batch_size = max(1, config.max_batch_size)
        preferred = settings.preferred_batch_size or (max_batch_size,)
        for size in preferred:
            if not 1 <= size <= max_batch_size:
                raise InvalidArgumentError(
                    f"preferred_batch_size {size} of model '{config.name}' is not between 1 and "
                    f"max_batch_size {max_batch_size}; remove it or raise max_batch_size"
                )
        return DynamicScheduler(
            queue=Fifo() if _needs_no_policy(settings) else PolicyQueue(settings),
            max_batch_size=max_batch_size,
            preferred_sizes=frozenset(preferred),
            delay=settings.max_queue_delay_microseconds / 1e6,
            preserves_ordering=settings.preserve_ordering,
        )


def _needs_no_policy(settings: ModelDynamicBatching) -> bool:
    policies = [settings.default_queue_policy or ModelQueuePolicy()]
    if settings.priority_levels:
        policies.extend(settings.priority_queue_policy.values())
    return settings.priority_levels <= 1 and not any(
        policy.default_timeout_microseconds or policy.allow_timeout_override or policy.max_queue_size
        for policy in policies
    )
