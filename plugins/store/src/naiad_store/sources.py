"""Sources of objects: the interface of object stores and of the Hugging Face Hub to a repository of models."""

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Protocol


@dataclass(frozen=True, slots=True)
class StoredObject:
    """An object: the `store` and its `path` there, its size in bytes, and its etag, which changes with its content.

    `revision` is that of the store in which it was listed, where a store has several.
    """

    store: str
    path: str
    size: int
    etag: str
    revision: str = ""

    @property
    def key(self) -> str:
        """Its name in a cache, the same in every revision with this content."""
        return hashlib.sha256(f"{self.store}\0{self.path}\0{self.size}\0{self.etag}".encode()).hexdigest()


class ObjectSource(Protocol):
    """The objects of a bucket, a container or a repository of files. For threads: its methods block."""

    def objects(self, prefix: str) -> Iterable[StoredObject]:
        """The objects whose paths begin with `prefix`, which ends in a slash or is "". Raises NaiadError."""

    def read(self, stored: StoredObject, start: int, end: int) -> Any:
        """A buffer with the bytes from `start` up to `end` of an object that is as it was listed.

        Raises NaiadError, also for an object that has changed.
        """
