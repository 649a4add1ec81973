"""Wait-for edges between loads: a model waits for the models that it loads, an ensemble for the models of its steps."""

from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager

from naiad.errors import InvalidArgumentError


class LoadWaits:
    """The loads that wait for other loads at this moment, by model names. Check `leads_to` before a wait begins.

    No load waits where that would close a ring, so there never is one.
    """

    def __init__(self) -> None:
        self._waits: dict[str, list[str]] = defaultdict(list)

    def leads_to(self, name: str, waiter: str) -> bool:
        """Whether the load of `name` waits for that of `waiter`, directly or through others, or is the same."""
        return name == waiter or any(self.leads_to(each, waiter) for each in self._waits.get(name, ()))

    @contextmanager
    def waiting(self, waiter: str, name: str) -> Iterator[None]:
        """The load of `waiter` waits for that of `name` while the block runs."""
        self._waits[waiter].append(name)
        try:
            yield
        finally:
            self._waits[waiter].remove(name)
            if not self._waits[waiter]:
                del self._waits[waiter]

    @contextmanager
    def nested(self, waiter: str, name: str) -> Iterator[None]:
        """As `waiting`, for a model that loads another. Raises InvalidArgumentError where that would close a ring."""
        if self.leads_to(name, waiter):
            raise InvalidArgumentError(
                f"model '{waiter}' is being loaded and asks to load or unload '{name}', which waits for that load to "
                "end; load models that need each other from outside, or after the load"
            )
        with self.waiting(waiter, name):
            yield
