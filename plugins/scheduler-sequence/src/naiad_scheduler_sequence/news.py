"""What has become of tickets and sequences since the last decision, for the next one to tell."""

from naiad.scheduler import Drop, DropReason, SequenceEnd, SequenceEndReason


class News:
    """Tickets to be dropped and sequences to be ended."""

    __slots__ = ("_drops", "_ended")

    def __init__(self) -> None:
        self._drops: dict[int, tuple[DropReason, str]] = {}
        self._ended: list[SequenceEnd] = []

    def __bool__(self) -> bool:
        """Whether there is anything to tell."""
        return bool(self._drops) or bool(self._ended)

    def drop(self, ticket: int, reason: DropReason, detail: str) -> None:
        """That ticket is given up."""
        self._drops[ticket] = (reason, detail)

    def forget(self, ticket: int) -> None:
        """The caller of that ticket left before it was told."""
        self._drops.pop(ticket, None)

    def end(self, instance: int, sequence: int, reason: SequenceEndReason) -> None:
        """That sequence is over for the model."""
        self._ended.append(SequenceEnd(instance, sequence, reason))

    def take(self) -> tuple[tuple[Drop, ...], tuple[SequenceEnd, ...]]:
        """All there is to tell; it is told once."""
        together: dict[tuple[DropReason, str], list[int]] = {}
        for ticket, why in self._drops.items():
            together.setdefault(why, []).append(ticket)
        drops = tuple(Drop(tuple(tickets), *why) for why, tickets in together.items())
        ended = tuple(self._ended)
        self._drops, self._ended = {}, []
        return drops, ended
