"""Errors of requests that end before the model answers them: timeouts, cancellation, unload, a failed scheduler."""

from naiad.errors import (
    DeadlineExceededError,
    InvalidArgumentError,
    NaiadError,
    QueueFullError,
    QueueTimeoutError,
    RequestCancelledError,
    UnavailableError,
)
from naiad.scheduler import Drop, DropReason
from naiad_statistics.versions import FailureReason


def refusal(drop: Drop, model: str) -> NaiadError:
    """The error for the requests of that drop."""
    if drop.reason is DropReason.QUEUE_FULL:
        detail = drop.detail or "raise max_queue_size, add instances, or send less"
        return QueueFullError(f"Exceeds maximum queue size of model '{model}': {detail}", retry_after=1.0)
    if drop.reason is DropReason.TIMEOUT:
        detail = drop.detail or "it waited longer than its queue policy allows"
        return QueueTimeoutError(f"Request timeout expired for model '{model}': {detail}", retry_after=1.0)
    if drop.reason is DropReason.CANCELLED:
        detail = drop.detail or "an earlier request of its sequence was taken back"
        return RequestCancelledError(f"the request to model '{model}' was cancelled: {detail}; start the sequence anew")
    if drop.reason is DropReason.LOST:
        detail = drop.detail or "the instance that its sequence ran on has died; the sequence must start anew"
        return UnavailableError(detail)
    return InvalidArgumentError(drop.detail or f"the scheduler of model '{model}' refused the request")


_REASONS = {
    DropReason.QUEUE_FULL: FailureReason.REJECTED,
    DropReason.TIMEOUT: FailureReason.REJECTED,
    DropReason.CANCELLED: FailureReason.CANCELED,
}


def reason_of(drop: Drop) -> FailureReason:
    """What metrics call that: a request that was refused or waited too long was rejected."""
    return _REASONS.get(drop.reason, FailureReason.OTHER)


def scheduler_started_anew(model: str) -> UnavailableError:
    """The error for a request that is to be executed again, and whose scheduler has failed meanwhile."""
    return UnavailableError(
        f"the scheduler of model '{model}' has failed and starts anew, and the request cannot go on; send it again"
    )


def came_too_late(model: str) -> DeadlineExceededError:
    """The error for a request whose deadline had passed on arrival."""
    return DeadlineExceededError(f"Deadline Exceeded: a request to model '{model}' arrived after its deadline")


def expired(model: str, executing: bool, seconds: float) -> DeadlineExceededError:
    """The error for a request whose deadline passed so many seconds after its arrival."""
    state = "executing" if executing else "waiting"
    return DeadlineExceededError(
        f"Deadline Exceeded: the request to model '{model}' was still {state} after {seconds:.3f} s"
    )
