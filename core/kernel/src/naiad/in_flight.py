"""Requests that a server has taken in: as their callers see them, and what they occupy while they wait and execute."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Protocol

from naiad.types import Request


class SubmittedRequest(Protocol):
    """A request that the server has taken, as its caller sees it. Every method is for the event loop's thread."""

    def cancel(self) -> None:
        """Say that the caller went away: nothing more is delivered. Harmless after the last delivery."""

    def pause(self) -> None:
        """Say that the caller reads slowly: a model that streams waits. What is on its way is still delivered."""

    def resume(self) -> None:
        """Say that the caller has room again."""


class Occupant(Protocol):
    """A request that occupies a slot of a limited resource, or waits for one."""

    @property
    def request(self) -> Request:
        """The request, whose `caller` says who waits for the answer."""

    @property
    def is_paused(self) -> bool:
        """Whether its model waits before it sends more, because the responses are read slowly."""

    @property
    def waits_for(self) -> "Sequence[Occupant]":
        """The requests that must all go on before this one can, such as the steps of an ensemble."""

    def unblock(self) -> None:
        """Ignore from now on the pauses that are made for other requests (`waits_for`): the responses gather."""


class InflightRequest(SubmittedRequest, Occupant, Protocol):
    """A request that a servable has taken in.

    `over`: no outcome is awaited any more. `queue_ns` and `phases`: how long it waited, and took for compute input,
    infer and output, in nanoseconds. It may also have `joined`: the size of its last batch, why it was closed; or ().
    """

    over: bool
    queue_ns: int
    phases: tuple[int, int, int]

    def pause(self, behind: Sequence[Occupant] = ()) -> None:
        """The caller reads slowly, until each request of `behind` goes on where there are any.

        A model that streams waits; what is on its way is still delivered.
        """


class WatchedRequest(Occupant, Protocol):
    """A request that executes, on whose behalf its model may call others. For the event loop's thread."""

    def watch(self, listener: Callable[[], None]) -> None:
        """Call that when no caller waits for the answer of the request any more: `Request.cancelled` is set then."""

    def unwatch(self, listener: Callable[[], None]) -> None:
        """Call that no more; harmless when it is not watched."""


@dataclass(frozen=True, slots=True)
class Occupancy:
    """A limited resource at this moment: the instances of a version, or the room at a step of an ensemble.

    `name` completes "waits for"; `advice`, the middle of a sentence, says how to get more than the present `slots`.
    Each of `users` occupies one with requests that end together. `waiting` lists the requests that wait for a slot.
    """

    name: str
    advice: str
    slots: int
    users: Sequence[Sequence[Occupant]]
    waiting: Callable[[], Iterable[Occupant]]
