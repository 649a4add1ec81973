"""The sequences that have a slot and no request, and for how long."""

from collections import OrderedDict

from naiad_scheduler_sequence.sequences import LiveSequence


class Silence:
    """Sequences in the order in which they fell silent, which is that in which `limit` seconds are over for them.

    `wake_at` is when to look again: not later than when the first has been silent too long. It may be earlier, for it
    stays as it is when that one speaks again: so an alarm is set once in `limit` seconds, not with every request.
    """

    __slots__ = ("_limit", "_since", "wake_at")

    def __init__(self, limit: float) -> None:
        self._limit = limit
        self._since: OrderedDict[int, tuple[float, LiveSequence]] = OrderedDict()
        self.wake_at: float | None = None

    def begin(self, sequence: LiveSequence, now: float) -> None:
        """A sequence has fallen silent; none has later."""
        self._since[sequence.number] = (now + self._limit, sequence)

    def end(self, sequence: LiveSequence) -> None:
        """A sequence is silent no longer, or never was."""
        self._since.pop(sequence.number, None)

    def take_due(self, now: float) -> list[LiveSequence]:
        """Take off those that have been silent too long at `now`, and say when to look again."""
        found: list[LiveSequence] = []
        if self.wake_at is not None and self.wake_at > now:
            return found
        self.wake_at = None
        while self._since:
            end, sequence = next(iter(self._since.values()))
            if end > now:
                self.wake_at = end
                break
            self._since.popitem(last=False)
            found.append(sequence)
        return found
