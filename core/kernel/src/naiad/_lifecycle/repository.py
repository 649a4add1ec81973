"""The model repositories of a server: which models they have, and whether their files have changed."""

import asyncio
from collections.abc import Mapping, Sequence

from naiad._lifecycle.bounded_threads import BoundedThreads
from naiad.errors import NotFoundError
from naiad.reports import IndexEntry
from naiad_config.fingerprints import Fingerprints
from naiad_config.stores import Location, Root, describe_ambiguity, find, problem_of, scan


class RepositoryReader:
    """Reads the repositories `roots` on `threads` of its own. For the event loop's thread.

    `index` has the models of the last read, by name, and why one cannot be loaded; `was_read`: whether any read was.
    """

    def __init__(self, roots: Sequence[Root], compares_content: bool) -> None:
        self.roots = roots
        self.index: Mapping[str, IndexEntry] = {}
        self.was_read = False
        self.threads = BoundedThreads("naiad-disk", 4)
        self.fingerprints = Fingerprints()
        self._compares_content = compares_content
        self._folders: Mapping[str, Sequence[Location]] = {}
        self._reading, self._reads_begun, self._latest_read = asyncio.Lock(), 0, 0

    async def read(self) -> Mapping[str, Sequence[Location]]:
        """The folders of all models, by name. Raises NotFoundError for a repository that cannot be read.

        Callers that come during a read share the next one: the read under way may have missed a new folder. One that
        fails or is cancelled is shared by none of them, and the next caller reads anew.
        """
        next_read = self._reads_begun + 1
        async with self._reading:
            if self._latest_read < next_read:
                self._reads_begun += 1
                self._folders, self.index = await self.threads.run(_read, self.roots)
                self._latest_read, self.was_read = self._reads_begun, True
            return self._folders

    async def find(self, name: str) -> list[Location]:
        """The folders of one model."""
        return await self.threads.run(find, self.roots, name)

    async def fingerprint(self, folders: Sequence[Location]) -> str | None:
        """A digest of the folders, or None where it is not compared: reading all weights would double the start."""
        if not self._compares_content:
            return None
        return await self.threads.run(lambda: "\n".join(map(self.fingerprints.of, folders)))

    def forget(self, name: str) -> None:
        """Drop what is remembered of a model that is in no repository."""
        self.fingerprints.forget(self.roots, name)


def _read(roots: Sequence[Root]) -> tuple[Mapping[str, Sequence[Location]], Mapping[str, IndexEntry]]:
    folders = scan(roots)
    return folders, {name: _entry(name, folders[name]) for name in sorted(folders)}


def _entry(name: str, folders: Sequence[Location]) -> IndexEntry:
    ambiguity = describe_ambiguity(folders)
    return IndexEntry(name, 0, "UNAVAILABLE" if ambiguity else "", ambiguity or problem_of(folders))


def not_found(name: str) -> NotFoundError:
    """The error for a model to load that no repository has."""
    return NotFoundError(
        f"failed to load '{name}', failed to poll from model repository: there is no folder of that name in it"
    )
