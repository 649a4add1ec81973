"""Room at the steps of ensembles, of which `max_inflight_requests` leaves only so much, as something to wait for."""

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol, TypeAlias

if TYPE_CHECKING:
    from naiad._kernel.call import Call
    from naiad._kernel.version import ModelVersion


class Limited(Protocol):
    """An ensemble whose steps have room for so many requests each."""

    name: str

    def under_way(self, step: int) -> "Mapping[Hashable, Sequence[Leaf]]":
        """The requests that the step has under way, each with all that it waits for."""
        ...


@dataclass(frozen=True, slots=True)
class Room:
    """The room at one step of an ensemble: whoever waits for it waits until one of those under way is over."""

    ensemble: Limited
    step: int

    def __str__(self) -> str:
        return f"step {self.step} of ensemble '{self.ensemble.name}'"

    def under_way(self) -> "Mapping[Hashable, Sequence[Leaf]]":
        """What has taken the room, each with all that it waits for."""
        return self.ensemble.under_way(self.step)


class Hold:
    """One wait for a room, until it is `over`; `lift` lets those go on that are paused for it, and gather responses."""

    __slots__ = ("lift", "over", "room")

    def __init__(self, room: Room, lift: Callable[[], None]) -> None:
        self.room = room
        self.lift = lift
        self.over = False


Leaf: TypeAlias = "Hold | tuple[ModelVersion, Call]"
"""What is waited for in the end: room, or a version that was given a call."""
