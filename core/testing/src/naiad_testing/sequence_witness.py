"""Contract checker for logs of simulations with sequences: reports each violation.

It keeps its own account of which requests make a sequence, from the arrivals alone, and holds what was sent against it.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field

from naiad.scheduler import DropReason
from naiad_kit.sequences import Row, SequenceEndReason
from naiad_testing.history import Arrival, Departed, Dropped, Ended, Log, Lost, Sent, SequenceOver, Streamed

_ROUNDING = 1e-9


@dataclass(slots=True, eq=False)
class _Account:
    """What is known of one sequence.

    `number`, `instance` and `row` are what its first batch said, `waiting` and `running` its tickets. `patience` is
    when its first timeout is over, `answered` when it last had nothing to do.
    """

    number: int = 0
    instance: int = -1
    row: int = -1
    waiting: set[int] = field(default_factory=set)
    running: set[int] = field(default_factory=set)
    patience: float = float("inf")
    answered: float = 0.0
    last_ticket: int = 0
    closed: bool = False
    ended: bool = False
    departed: bool = False
    over: bool = False


class Witness:
    """One reading of one log. A sequence is over with its last request, or when the log says so."""

    def __init__(self, log: Log, max_batch_size: int, slots: int, idle_limit: float, keeps_rows: bool) -> None:
        self._log = log
        self._max = max_batch_size
        self._slots = slots
        self._idle_limit = idle_limit
        self._keeps_rows = keeps_rows
        self._arrived = 0  # tickets that are in the account; they come between two entries, unmentioned
        self._open: dict[int | str, _Account] = {}  # by correlation id
        self._of_ticket: dict[int, _Account] = {}
        self._of_number: dict[int, _Account] = {}
        self._placed: list[dict[int, _Account]] = [{} for _ in range(log.instances)]
        self._crashed_at = -1.0
        self._rounds = _rounds(log)
        self._refused = {entry.tickets[0] for entry in log.dropped if self._is_refusal(entry)}

    def complaints(self) -> Iterator[str]:
        """What is wrong, one sentence at a time; nothing is read after the first that matters to the reader."""
        if self._log.stranded:
            yield f"the tickets {self._log.stranded} were never answered, although every instance was idle"
        for entry in self._log.entries:
            yield from self._arrivals_before(entry)
            match entry:
                case Sent():
                    yield from self._sent(entry)
                case Ended():
                    self._settle(entry.time, [ticket for ticket in entry.tickets if not self._streams(ticket)])
                case Streamed():
                    self._settle(entry.time, [entry.ticket])
                case Departed():
                    account = self._of_ticket[entry.ticket]
                    account.departed = True
                    account.waiting.discard(entry.ticket)
                    self._forget(account)
                case Lost():
                    self._crashed_at = entry.time
                    for account in list(self._placed[entry.instance].values()):
                        self._finish(account)
                case SequenceOver():
                    yield from self._over(entry)
                case Dropped():
                    yield from self._dropped(entry)
        unfinished = [number for placed in self._placed for number in placed]
        if unfinished:
            yield f"all is quiet, but the sequences {unfinished} have neither ended nor are they over"

    # Requests come

    def _arrivals_before(self, entry: object) -> Iterator[str]:
        """Take in what has come by now: at one instant things end first, then requests come, then it is decided."""
        time = getattr(entry, "time", 0.0)
        while self._arrived < len(self._rounds):
            number = self._arrived + 1
            came = self._rounds[self._arrived]
            if came > time or (came == time and isinstance(entry, Ended | Streamed | Lost)):
                return
            if isinstance(entry, Departed) and came == time and self._rounds[entry.ticket - 1] < time:
                return
            if isinstance(entry, Dropped) and number == entry.tickets[0] and number in self._refused:
                return
            self._arrived += 1
            if number not in self._refused:
                yield from self._arrive(number, self._log.arrival_of(number), came)

    def _arrive(self, ticket: int, arrival: Arrival, came: float) -> Iterator[str]:
        if not self._log.origins and arrival.sequence_id:
            account = self._open.get(arrival.sequence_id)
            if account is None:
                if not arrival.sequence_start:
                    yield f"ticket {ticket} was taken in, though it starts no sequence and belongs to none"
                account = self._open[arrival.sequence_id] = _Account()
            idle = not account.waiting and not account.running
            if account.number and idle and came > account.answered + self._idle_limit + _ROUNDING:
                yield f"ticket {ticket} was taken in, though sequence {account.number} was silent for too long"
            if arrival.sequence_end:
                account.closed = True
                del self._open[arrival.sequence_id]
        else:
            origin = self._log.origin_of(ticket)
            account = self._of_ticket.setdefault(-origin, _Account())
        self._of_ticket[ticket] = account
        account.waiting.add(ticket)
        if arrival.timeout:
            account.patience = min(account.patience, came + arrival.timeout)

    def _is_refusal(self, entry: Dropped) -> bool:
        return entry.reason is DropReason.INVALID and len(entry.tickets) == 1

    # Batches

    def _sent(self, batch: Sent) -> Iterator[str]:
        if not batch.rows:
            yield f"the batch {batch.tickets} has no rows"
        if max(batch.size, len(batch.rows)) > self._max:
            yield f"the batch {batch.tickets} has {len(batch.rows)} rows, more than {self._max}"
        if len({self._log.arrival_of(ticket).shape_key for ticket in batch.tickets}) > 1:
            yield f"the batch {batch.tickets} holds requests of different shapes"
        if not batch.reason:
            yield f"the batch {batch.tickets} was sent without a reason"
        numbers = [row.sequence for row in batch.rows if row.sequence]
        if len(set(numbers)) < len(numbers):
            yield f"the batch {batch.tickets} holds a sequence twice: {numbers}"
        for index, row in enumerate(batch.rows):
            if row.ticket:
                yield from self._row(batch, index, row)
            elif not self._keeps_rows:
                yield f"the batch {batch.tickets} has a row without a request"

    def _row(self, batch: Sent, index: int, row: Row) -> Iterator[str]:
        account = self._of_ticket[row.ticket]
        what = f"ticket {row.ticket} of sequence {row.sequence}"
        if account.number == 0:
            yield from self._begin(account, batch, index, row)
        elif row.start is not (self._log.arrival_of(row.ticket).sequence_start and not self._log.origins):
            yield f"{what} is marked as a start, or is one without the mark"
        if (account.number, account.instance) != (row.sequence, batch.instance):
            yield f"{what} was sent to instance {batch.instance}; it belongs to {account.number} on {account.instance}"
        if self._keeps_rows and account.row != index:
            yield f"{what} is in row {index}; its sequence is in row {account.row}"
        if account.over or account.departed or account.ended:
            yield f"{what} was sent after the end of its sequence"
        if row.ticket < account.last_ticket:
            yield f"{what} was sent after ticket {account.last_ticket}, which came later"
        account.last_ticket = row.ticket
        account.waiting.discard(row.ticket)
        account.running.add(row.ticket)
        if row.end is not (account.closed and not account.waiting):
            yield f"{what} is marked as the last of its sequence, or is it without the mark"
        if row.end:
            account.ended = True
            if self._keeps_rows:
                self._finish(account)

    def _begin(self, account: _Account, batch: Sent, index: int, row: Row) -> Iterator[str]:
        what = f"ticket {row.ticket} of sequence {row.sequence}"
        if row.sequence < 1 or row.sequence in self._of_number:
            yield f"{what} is the first of its sequence, whose number is not a new one"
        if not row.start:
            yield f"{what} is the first of its sequence, and is not marked so"
        account.number, account.instance, account.row = row.sequence, batch.instance, index
        self._of_number[row.sequence] = account
        placed = self._placed[batch.instance]
        if len(placed) >= self._slots:
            yield f"{what} begins on instance {batch.instance}, which has {len(placed)} sequences already"
        if self._keeps_rows and any(other.row == index for other in placed.values()):
            yield f"{what} begins in row {index}, which another sequence has"
        placed[row.sequence] = account

    def _streams(self, ticket: int) -> bool:
        return self._log.arrival_of(ticket).streams > 0

    def _settle(self, time: float, tickets: list[int]) -> None:
        for ticket in tickets:
            account = self._of_ticket[ticket]
            account.running.discard(ticket)
            account.answered = time
            comes_back = bool(self._log.origins) and self._log.origin_of(ticket) in self._log.origins[ticket:]
            if not account.running and (account.ended or (self._log.origins and not comes_back)):
                self._finish(account)

    # Endings

    def _finish(self, account: _Account) -> None:
        account.over = True
        self._placed[account.instance].pop(account.number, None)
        self._forget(account)

    def _forget(self, account: _Account) -> None:
        for name in [name for name, open_account in self._open.items() if open_account is account]:
            del self._open[name]

    def _over(self, entry: SequenceOver) -> Iterator[str]:
        account = self._of_number.get(entry.sequence)
        if account is None or account.instance != entry.instance or account.over:
            yield f"sequence {entry.sequence} is said to be over on instance {entry.instance}, which has no such one"
            return
        if entry.reason is SequenceEndReason.IDLE:
            if account.waiting or account.running:
                yield f"sequence {entry.sequence} is over for its silence, but has requests"
            silent = entry.time - account.answered
            if abs(silent - self._idle_limit) > _ROUNDING:
                yield f"sequence {entry.sequence} is over after {silent} s of silence, not {self._idle_limit} s"
        elif not (entry.reason is SequenceEndReason.CANCELLED and account.departed):
            yield f"sequence {entry.sequence} is over as {entry.reason}, which has not happened"
        self._finish(account)

    def _dropped(self, entry: Dropped) -> Iterator[str]:
        if entry.tickets[0] in self._refused:
            self._arrived = max(self._arrived, entry.tickets[0])
            arrival = self._log.arrival_of(entry.tickets[0])
            crashed = self._crashed_at == entry.time  # what has a slot and has not begun is not in the account
            if arrival.sequence_start or (arrival.sequence_id in self._open and not crashed):
                yield f"ticket {entry.tickets[0]} was refused, though it starts a sequence or belongs to one"
            return
        accounts = {self._of_ticket[ticket] for ticket in entry.tickets}
        for account in accounts:
            account.waiting.difference_update(entry.tickets)
            if account.waiting:
                yield f"of one sequence the tickets {entry.tickets} were dropped, and {account.waiting} were not"
            self._forget(account)
            happened = {
                DropReason.CANCELLED: account.departed,
                DropReason.LOST: self._crashed_at == entry.time,
                DropReason.TIMEOUT: not account.number and abs(account.patience - entry.time) <= _ROUNDING,
            }
            if not happened.get(entry.reason):
                yield f"the tickets {entry.tickets} were dropped as '{entry.reason}', which has not happened"
            account.departed = True


def _rounds(log: Log) -> list[float]:
    """When each ticket came. One that came back did so when its last batch ended."""
    if not log.origins:
        return [arrival.time for arrival in log.arrivals]
    ended = {ticket: entry.time for entry in log.entries if isinstance(entry, Ended) for ticket in entry.tickets}
    last: dict[int, int] = {}
    times = []
    for ticket, origin in enumerate(log.origins, 1):
        times.append(ended[last[origin]] if origin in last else log.arrivals[origin - 1].time)
        last[origin] = ticket
    return times
