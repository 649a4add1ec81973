"""What goes into a simulation of a scheduler, and the log that comes out of it."""

from collections.abc import Hashable
from dataclasses import dataclass

from naiad.scheduler import DropReason


@dataclass(frozen=True, slots=True)
class Arrival:
    """A request that comes at `time`, in seconds; the other fields are those of `naiad.scheduler.Ticket`.

    `leaves` is when its caller goes away, if it still waits then (None: the caller stays).
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


@dataclass(frozen=True, slots=True)
class Sent:
    """A batch of `size` items went to an instance."""

    time: float
    instance: int
    tickets: tuple[int, ...]
    reason: str
    size: int


@dataclass(frozen=True, slots=True)
class Ended:
    """An instance finished its batch."""

    time: float
    instance: int
    tickets: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Dropped:
    """Tickets were refused or given up."""

    time: float
    tickets: tuple[int, ...]
    reason: DropReason
    detail: str = ""


@dataclass(frozen=True, slots=True)
class Left:
    """A caller went away while its ticket waited."""

    time: float
    ticket: int


@dataclass(frozen=True, slots=True)
class Waited:
    """The scheduler asked to be woken."""

    time: float
    until: float


Entry = Sent | Ended | Dropped | Left | Waited


@dataclass(frozen=True, slots=True)
class Log:
    """What happened, in order. Ticket n is the nth of `arrivals`, counted from 1.

    `stranded` are the tickets that still wait although nothing will happen any more.
    """

    arrivals: tuple[Arrival, ...]
    entries: tuple[Entry, ...]
    instances: int
    stranded: tuple[int, ...] = ()

    @property
    def sent(self) -> tuple[Sent, ...]:
        """The batches."""
        return tuple(entry for entry in self.entries if isinstance(entry, Sent))

    @property
    def dropped(self) -> tuple[Dropped, ...]:
        """The refusals."""
        return tuple(entry for entry in self.entries if isinstance(entry, Dropped))

    @property
    def left(self) -> tuple[Left, ...]:
        """The callers that went away while they waited."""
        return tuple(entry for entry in self.entries if isinstance(entry, Left))

    def arrival_of(self, ticket: int) -> Arrival:
        """What became this ticket."""
        return self.arrivals[ticket - 1]
