"""Which loads wait for which others: models for those that they ask for, ensembles for the models of their steps."""

from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager


class LoadWaits:
    """The waits of this moment, by the names of models. Whoever is about to wait asks first whether that makes a ring.

    Nobody waits where it would, so there never is one.
    """

    def __init__(self) -> None:
        self._waits: dict[str, list[str]] = defaultdict(list)

    def leads_to(self, name: str, asker: str) -> bool:
        """Whether the load of `name` waits for that of `asker`, itself or through others, or is the same."""
        return name == asker or any(self.leads_to(each, asker) for each in self._waits.get(name, ()))

    @contextmanager
    def waiting(self, asker: str, name: str) -> Iterator[None]:
        """The load of `asker` waits for that of `name` while the block runs."""
        self._waits[asker].append(name)
        try:
            yield
        finally:
            self._waits[asker].remove(name)
            if not self._waits[asker]:
                del self._waits[asker]
