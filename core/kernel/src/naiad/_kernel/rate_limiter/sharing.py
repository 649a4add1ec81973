"""The rate limiter of a running server: it tells the queues of all models which of their places may go."""

import logging
from collections.abc import Callable, Sequence

from naiad._kernel.rate_limiter.limiter import RateLimiter
from naiad._kernel.rate_limiter.options import rate_limiter_of
from naiad._kernel.rate_limiter.resources import Needs, needs_of
from naiad.backend import Placement
from naiad.options import Settings

_logger = logging.getLogger("naiad")


class Sharing:
    """Shares resources out among the versions of all models. Every method is for the event loop's thread."""

    def __init__(self, limiter: RateLimiter) -> None:
        self.limiter = limiter
        self._listeners: dict[int, Callable[[], None]] = {}

    @classmethod
    def of(cls, settings: Settings) -> "Sharing | None":
        """What the options ask for, None for no limits. Raises InvalidArgumentError."""
        limiter = rate_limiter_of(settings)
        if limiter is not None:
            return cls(limiter)
        if settings["rate-limit-resource"]:
            _logger.warning("--rate-limit-resource changes nothing without --rate-limit=execution_count")
        return None

    def admit(self, placements: Sequence[Placement]) -> "Share":
        """Take in a version with these instances. Raises InvalidArgumentError when they could never run."""
        return Share(self, self.limiter.admit([needs_of(each) for each in placements if not each.group.passive]))

    def enter(self, member: int, needs: Needs, go: Callable[[], None]) -> int:
        """A place of a version; `go` is called when it may start or go on."""
        number = self.limiter.enter(member, needs)
        self._listeners[number] = go
        return number

    def leave(self, member: int, numbers: Sequence[int]) -> None:
        """The version and its places are gone."""
        for number in numbers:
            del self._listeners[number]
        self.limiter.dismiss(member)
        self.hand_out()

    def hand_out(self) -> None:
        """Let those go that may."""
        for number in self.limiter.grants():
            self._listeners[number]()


class Share:
    """What one version has to do with the rate limiter. A place is named here by its number in the version.

    After `leave` nothing is limited any more; `on_leave` is called by it.
    """

    def __init__(self, sharing: Sharing, member: int) -> None:
        self._sharing = sharing
        self._limiter = sharing.limiter
        self._member: int | None = member
        self._numbers: list[int] = []
        self.on_leave: Callable[[], None] = lambda: None

    @property
    def has_left(self) -> bool:
        """Whether the version is gone."""
        return self._member is None

    def enter(self, needs: Needs, go: Callable[[], None]) -> None:
        """One more place, numbered from 0 up; `go` is called when it may start or go on."""
        if self._member is not None:
            self._numbers.append(self._sharing.enter(self._member, needs, go))

    def want(self, place: int, resumes: bool = False) -> None:
        """The place waits for its turn; `resumes`: to go on. `hand_out` says when all is told."""
        if self._member is not None:
            self._limiter.want(self._numbers[place], resumes)

    def started(self, place: int) -> None:
        """The place uses its turn."""
        if self._member is not None:
            self._limiter.started(self._numbers[place])

    def release(self, place: int) -> None:
        """The place holds nothing any more."""
        if self._member is not None:
            self._limiter.release(self._numbers[place])

    def forget(self, place: int) -> None:
        """The place neither holds nor waits any more."""
        if self._member is not None:
            self._limiter.forget(self._numbers[place])

    def hand_out(self) -> None:
        """Let those go that may, of whichever version."""
        self._sharing.hand_out()

    def leave(self) -> None:
        """The version is gone, and with it what its places held; harmless once more."""
        member, self._member = self._member, None
        if member is not None:
            self._sharing.leave(member, self._numbers)
            self.on_leave()
