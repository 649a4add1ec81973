"""Factory of the sequence batcher: reads `sequence_batching` of a model configuration."""

from collections.abc import Callable

from naiad.backend import ModelContext
from naiad.errors import InvalidArgumentError
from naiad_config import ModelConfig, ModelSequenceBatching, StrategyDirect, StrategyOldest
from naiad_scheduler_sequence.admission import AdmissionRules
from naiad_scheduler_sequence.batcher import Batcher
from naiad_scheduler_sequence.codec.codec import SequenceCodec, sequence_codec
from naiad_scheduler_sequence.direct import DirectBatcher
from naiad_scheduler_sequence.oldest import OldestBatcher
from naiad_scheduler_sequence.scheduler import SequenceScheduler
from naiad_scheduler_sequence.sequences import LiveSequence
from naiad_scheduler_sequence.slots import Slots

IDLE_MICROSECONDS = 1_000_000
"""How long a sequence may be silent where its model does not say."""

_MakeBatcher = Callable[[int, dict[int, LiveSequence]], Batcher]


class SequenceBatching:
    """The factory for `sequence_batching { … }`, also chosen by name with the model parameter `scheduler`."""

    name = "sequence"
    choice = "sequence_batching"
    extensions = ("sequence",)

    def create(self, config: ModelConfig, instances: int) -> SequenceScheduler:
        """A sequence batcher for one model version with that many instances.

        Raises InvalidArgumentError for settings that cannot be kept: a preferred batch size that no batch of this model
        can have, fewer than 0 candidates, a slot utilization that is not a share.
        """
        settings = config.sequence_batching or ModelSequenceBatching()
        oldest = settings.oldest
        decoupled = config.model_transaction_policy is not None and config.model_transaction_policy.decoupled
        if oldest is None:
            slots, make = _direct(config, settings.direct or StrategyDirect())
        else:
            slots, make = _oldest(config, oldest)
        return SequenceScheduler(
            admission=AdmissionRules(config, iterative=settings.iterative_sequence),
            slots=Slots(instances, slots),
            batchers=lambda waiting: [make(instance, waiting) for instance in range(instances)],
            idle_limit=(settings.max_sequence_idle_microseconds or IDLE_MICROSECONDS) / 1e6,
            # the next request starts from the state that the last one leaves, which counts when all of it is sent
            overlaps=not settings.state and (oldest is None or (decoupled and not oldest.preserve_ordering)),
            frees_early=oldest is None,
            iterative=settings.iterative_sequence,
            # not in the order of arrival: a request in the backlog would hold back the answers of those with a slot
            orders_dispatches=oldest is not None and oldest.preserve_ordering,
        )

    def codec(self, context: ModelContext) -> SequenceCodec | None:
        """The controls and implicit states of one model version; None for a configuration without sequences. Blocks.

        Raises InvalidArgumentError naming the state, and the file where it cannot be read or holds too little.
        """
        return sequence_codec(context)


def _direct(config: ModelConfig, strategy: StrategyDirect) -> tuple[int, _MakeBatcher]:
    """Slots for each instance, and what makes their batchers."""
    utilization = strategy.minimum_slot_utilization
    if not 0 <= utilization <= 1:
        raise InvalidArgumentError(
            f"minimum_slot_utilization {utilization:g} of model '{config.name}' is not between 0 and 1; it is the "
            "share of an instance's slots that are to have a request"
        )
    slots = max(1, config.max_batch_size)

    def make(instance: int, waiting: dict[int, LiveSequence]) -> Batcher:
        delay = strategy.max_queue_delay_microseconds / 1e6
        return DirectBatcher(instance, waiting, slots=slots, delay=delay, minimum_utilization=utilization)

    return slots, make


def _oldest(config: ModelConfig, strategy: StrategyOldest) -> tuple[int, _MakeBatcher]:
    """Candidates for each instance, and what makes their batchers."""
    largest = max(1, config.max_batch_size)
    preferred = strategy.preferred_batch_size or (largest,)
    for size in preferred:
        if not 1 <= size <= largest:
            raise InvalidArgumentError(
                f"preferred_batch_size {size} of model '{config.name}' is not between 1 and max_batch_size {largest}; "
                "remove it or raise max_batch_size"
            )
    if strategy.max_candidate_sequences < 0:
        raise InvalidArgumentError(
            f"max_candidate_sequences {strategy.max_candidate_sequences} of model '{config.name}' is less than 0; say "
            "how many sequences an instance may work on at once"
        )

    def make(instance: int, waiting: dict[int, LiveSequence]) -> Batcher:
        return OldestBatcher(
            instance,
            waiting,
            max_batch_size=largest,
            preferred_sizes=frozenset(preferred),
            delay=strategy.max_queue_delay_microseconds / 1e6,
        )

    return max(1, strategy.max_candidate_sequences), make
