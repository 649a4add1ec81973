"""Admission rules of the sequence scheduler: which requests are refused on arrival, and the message of each refusal."""

from naiad.scheduler import Drop, DropReason, Ticket
from naiad_config import DataType, ModelConfig, SequenceControlKind

_SHOWN = 128
"""The most characters of a correlation id in a message."""


class AdmissionRules:
    """Checks requests to a model with sequence batching.

    `_kind` is the required type of correlation ids, None if the model has no input for them: both types are valid then.
    """

    __slots__ = ("_iterative", "_kind", "_model")

    def __init__(self, config: ModelConfig, *, iterative: bool) -> None:
        self._model = config.name
        self._iterative = iterative
        self._kind = _kind_of_id(config)

    def refusal(self, ticket: Ticket) -> Drop | None:
        """The drop for a request that breaks a rule, None for a valid one."""
        if ticket.batch_size != 1:
            return _invalid(
                ticket,
                f"inference request to model '{self._model}' must specify batch-size 1 due to requirements of sequence "
                f"batcher, not {ticket.batch_size}; send each item as a request of its own",
            )
        if self._iterative:
            return None
        if not ticket.sequence_id:
            return _invalid(
                ticket,
                f"inference request to model '{self._model}' must specify a non-zero or non-empty correlation ID, for "
                "its requests come in sequences; set sequence_id to the same number or text in all of a sequence",
            )
        if self._kind is not None and not isinstance(ticket.sequence_id, self._kind):
            expected, actual = ("a text", "a number") if self._kind is str else ("a number", "a text")
            return _invalid(
                ticket,
                f"inference request to model '{self._model}' has {actual} as correlation ID, "
                f"{_shown(ticket.sequence_id)!r}, but its CONTROL_SEQUENCE_CORRID tensor takes {expected}; "
                f"send {expected}",
            )
        return None

    def no_start(self, ticket: Ticket) -> Drop:
        """The drop for a request whose sequence has not started or has ended."""
        return _invalid(
            ticket,
            f"inference request for sequence {_shown(ticket.sequence_id)} to model '{self._model}' must specify the "
            "START flag on the first request of the sequence; it has not started, has ended, or was silent for too "
            "long",
        )

    def too_late(self) -> str:
        """The message for the requests of a sequence that got no slot in time."""
        return (
            "timeout of the corresponding sequence has been expired: no slot was free for it in time; ask for a longer "
            "timeout, or give the model more instances or slots"
        )

    def lost(self, correlation_id: int | str) -> str:
        """The message for the requests of a sequence whose instance has died."""
        which = f"sequence {_shown(correlation_id)}" if correlation_id else "the sequence"
        return (
            f"the instance of model '{self._model}' that {which} ran on has died, and with it what the model knew of "
            "the sequence; start it anew"
        )


def _shown(correlation_id: int | str) -> int | str:
    """The id cut to a length that fits a message: callers choose texts of any length."""
    if isinstance(correlation_id, str) and len(correlation_id) > _SHOWN:
        return f"{correlation_id[:_SHOWN]}…"
    return correlation_id


def _kind_of_id(config: ModelConfig) -> type | None:
    batching = config.sequence_batching
    for control_input in batching.control_input if batching else ():
        for control in control_input.control:
            if control.kind is SequenceControlKind.CONTROL_SEQUENCE_CORRID:
                return str if control.data_type is DataType.TYPE_STRING else int
    return None


def _invalid(ticket: Ticket, detail: str) -> Drop:
    return Drop((ticket.id,), DropReason.INVALID, detail)
