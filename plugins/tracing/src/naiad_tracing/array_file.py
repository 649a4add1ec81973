"""JSON array file: valid JSON after every append."""

import os
from collections.abc import Sequence


class ArrayFile:
    """Appends to the array by writing over its closing bracket, in one write to the system.

    The file is open only while it is written. One that another program removed, emptied or wrote to begins anew. Making
    it empties the file. Raises OSError when it cannot be written.
    """

    def __init__(self, path: str) -> None:
        self._path = path
        self._size = 0
        self.append(())

    def append(self, elements: Sequence[str]) -> None:
        """Add these JSON texts; when that raises, the array is as it was before."""
        descriptor = os.open(self._path, os.O_RDWR | os.O_CREAT, 0o644)
        try:
            self._append(descriptor, elements)
        finally:
            os.close(descriptor)

    def _append(self, descriptor: int, elements: Sequence[str]) -> None:
        if not self._size or os.fstat(descriptor).st_size != self._size:
            self._size = 0
            os.ftruncate(descriptor, 0)
        text = ",\n".join(elements)
        offset = max(0, self._size - 1)
        glue = "[" if not self._size else ",\n" if self._size > len("[]") and text else ""
        content = f"{glue}{text}]".encode("utf-8", "replace")
        try:
            _write(descriptor, content, offset)
        except OSError:
            os.ftruncate(descriptor, offset)
            _write(descriptor, b"]" if offset else b"", offset)
            raise
        self._size = offset + len(content)


def _write(descriptor: int, content: bytes, offset: int) -> None:
    rest = memoryview(content)
    while rest:
        written = os.pwrite(descriptor, rest, offset)
        rest, offset = rest[written:], offset + written
