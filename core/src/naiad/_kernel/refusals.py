"""What a caller is told when a scheduler gives its request up."""

from naiad._kernel.statistics import FailureReason
from naiad.errors import InvalidArgumentError, NaiadError, QueueFullError, QueueTimeoutError
from naiad.scheduler import Drop, DropReason


def refusal(drop: Drop, model: str) -> NaiadError:
    """The error for the requests of that drop."""
    if drop.reason is DropReason.QUEUE_FULL:
        detail = drop.detail or "raise max_queue_size, add instances, or send less"
        return QueueFullError(f"Exceeds maximum queue size of model '{model}': {detail}", retry_after=1.0)
    if drop.reason is DropReason.TIMEOUT:
        detail = drop.detail or "it waited longer than its queue policy allows"
        return QueueTimeoutError(f"Request timeout expired for model '{model}': {detail}", retry_after=1.0)
    return InvalidArgumentError(drop.detail or f"the scheduler of model '{model}' refused the request")


def reason_of(drop: Drop) -> FailureReason:
    """What metrics call that: a request that was refused or waited too long was rejected."""
    rejected = drop.reason in (DropReason.QUEUE_FULL, DropReason.TIMEOUT)
    return FailureReason.REJECTED if rejected else FailureReason.OTHER
