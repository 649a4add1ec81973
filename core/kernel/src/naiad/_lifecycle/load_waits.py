"""Wait-for edges between loads: a model waits for the models that it loads, an ensemble for the models of its steps."""

from collections.abc import Iterator
from contextlib import contextmanager

from naiad.errors import InvalidArgumentError


class LoadWaits:
    """The loads that wait for other loads at this moment, by model names. Check `leads_to` before a wait begins.

    No load waits where that would close a ring, so there never is one.
    """

    def __init__(self) -> None:
        self._waits: list[tuple[str, str]] = []

    def leads_to(self, name: str, waiter: str) -> bool:
        """Whether the load of `name` waits for that of `waiter`, directly or through others, or is the same."""
        return name == waiter or any(self.leads_to(other, waiter) for each, other in self._waits if each == name)

    @contextmanager
    def waiting(self, waiter: str, name: str) -> Iterator[None]:
        """The load of `waiter` waits for that of `name` while the block runs."""
        self._waits.append((waiter, name))
        try:
            yield
        finally:
            self._waits.remove((waiter, name))

    def check(self, waiter: str, name: str) -> None:
        """Raise InvalidArgumentError where a model that loads another would close a ring."""
        if self.leads_to(name, waiter):
            raise InvalidArgumentError(
                f"model '{waiter}' is being loaded and asks to load or unload '{name}', which waits for that load to "
                "end; load models that need each other from outside, or after the load"
            )
