"""Histories of a simulation: the input of the simulator, and the log that it writes."""

from collections.abc import Hashable
from dataclasses import dataclass

from naiad.scheduler import DropReason
from naiad_kit.sequences import Row, SequenceEndReason


@dataclass(frozen=True, slots=True)
class Arrival:
    """A request that comes at `time`, in seconds; the other fields are those of `naiad.scheduler.Ticket`.

    `leaves` is when its caller goes away, if it still waits then (None: the caller stays). `streams` is for how many
    seconds responses are sent after its batch, and `returns` how often the model asks to see it again.
    """

    time: float
    batch_size: int = 1
    shape_key: Hashable = None
    priority: int = 0
    timeout: float = 0.0
    leaves: float | None = None
    sequence_id: int | str = 0
    sequence_start: bool = False
    sequence_end: bool = False
    streams: float = 0.0
    returns: int = 0


@dataclass(frozen=True, slots=True)
class Crash:
    """An instance that dies at `time`, with its batch, and is there again `seconds` later."""

    time: float
    instance: int
    seconds: float = 0.0


@dataclass(frozen=True, slots=True)
class SequenceHistory:
    """What comes, and which instances die meanwhile."""

    arrivals: tuple[Arrival, ...]
    crashes: tuple[Crash, ...] = ()


@dataclass(frozen=True, slots=True)
class Sent:
    """A batch of `size` items went to an instance; `rows` are those of a batch of sequences."""

    time: float
    instance: int
    tickets: tuple[int, ...]
    reason: str
    size: int
    rows: tuple[Row, ...] = ()


@dataclass(frozen=True, slots=True)
class Ended:
    """An instance finished its batch; those of its tickets that stream are not over yet."""

    time: float
    instance: int
    tickets: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Streamed:
    """The last response of a ticket was sent, after its batch."""

    time: float
    ticket: int


@dataclass(frozen=True, slots=True)
class Lost:
    """An instance died, and with it the batch of these tickets."""

    time: float
    instance: int
    tickets: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class SequenceOver:
    """The model of that instance was notified of the end of a sequence."""

    time: float
    instance: int
    sequence: int
    reason: SequenceEndReason


@dataclass(frozen=True, slots=True)
class Dropped:
    """Tickets were refused or given up."""

    time: float
    tickets: tuple[int, ...]
    reason: DropReason
    detail: str = ""


@dataclass(frozen=True, slots=True)
class Departed:
    """A caller went away while its ticket waited."""

    time: float
    ticket: int


@dataclass(frozen=True, slots=True)
class Waited:
    """The scheduler asked to be woken."""

    time: float
    until: float


Entry = Sent | Ended | Streamed | Lost | SequenceOver | Dropped | Departed | Waited


@dataclass(frozen=True, slots=True)
class Log:
    """What happened, in order. Ticket n is the nth request, counted from 1, those that came back among them.

    `origins` has the number of the arrival for each ticket, () where ticket n is the nth of `arrivals`. `stranded` are
    the tickets that still wait although nothing will happen any more.
    """

    arrivals: tuple[Arrival, ...]
    entries: tuple[Entry, ...]
    instances: int
    stranded: tuple[int, ...] = ()
    origins: tuple[int, ...] = ()

    @property
    def sent(self) -> tuple[Sent, ...]:
        """The batches."""
        return tuple(entry for entry in self.entries if isinstance(entry, Sent))

    @property
    def dropped(self) -> tuple[Dropped, ...]:
        """The refusals."""
        return tuple(entry for entry in self.entries if isinstance(entry, Dropped))

    @property
    def departed(self) -> tuple[Departed, ...]:
        """The callers that went away while they waited."""
        return tuple(entry for entry in self.entries if isinstance(entry, Departed))

    @property
    def over(self) -> tuple[SequenceOver, ...]:
        """The sequences that were over before a request said that they end."""
        return tuple(entry for entry in self.entries if isinstance(entry, SequenceOver))

    def origin_of(self, ticket: int) -> int:
        """The number of the arrival that this ticket came from, the same for all in which it came back."""
        return self.origins[ticket - 1] if self.origins else ticket

    def arrival_of(self, ticket: int) -> Arrival:
        """What became this ticket."""
        return self.arrivals[self.origin_of(ticket) - 1]
