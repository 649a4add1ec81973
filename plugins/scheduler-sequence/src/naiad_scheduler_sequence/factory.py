"""Makes a sequence batcher from a model configuration."""

from naiad.config import ModelConfig, ModelSequenceBatching, StrategyDirect
from naiad.errors import InvalidArgumentError
from naiad_scheduler_sequence.direct import Batcher, DirectBatcher
from naiad_scheduler_sequence.refusals import Entrance
from naiad_scheduler_sequence.scheduler import SequenceScheduler
from naiad_scheduler_sequence.sequences import LiveSequence
from naiad_scheduler_sequence.slots import Slots


class SequenceBatching:
    """The factory for `sequence_batching { … }`, also chosen by name with the model parameter `scheduler`."""

    name = "sequence"
    choice = "sequence_batching"

    def create(self, config: ModelConfig, instances: int) -> SequenceScheduler:
        """A sequence batcher for one model version with that many instances.

        Raises InvalidArgumentError for settings that cannot be kept.
        """
        settings = config.sequence_batching or ModelSequenceBatching()
        entrance = Entrance(config, iterative=settings.iterative_sequence)
        direct = settings.direct or StrategyDirect()
        if not 0 <= direct.minimum_slot_utilization <= 1:
            raise InvalidArgumentError(
                f"minimum_slot_utilization {direct.minimum_slot_utilization:g} of model '{config.name}' is not between "
                "0 and 1; it is a share of the slots of an instance"
            )
        each = max(1, config.max_batch_size)

        def batchers(waiting: dict[int, LiveSequence]) -> list[Batcher]:
            return [
                DirectBatcher(
                    instance,
                    waiting,
                    slots=each,
                    delay=direct.max_queue_delay_microseconds / 1e6,
                    minimum_utilization=direct.minimum_slot_utilization,
                )
                for instance in range(instances)
            ]

        return SequenceScheduler(entrance=entrance, slots=Slots(instances, each), batchers=batchers)
