"""POSIX shared memory segments of clients.

A client may truncate its segment at any time, and touching a page behind the end of a mapped one kills the process,
while a system call only says so. So what is small is read and written through the descriptor; what is large is lent to
models and written through mappings (`mapping`), where these can be guarded.
"""

import mmap
import os
import resource
import stat
import weakref
from errno import EAGAIN, EMFILE, ENFILE, ENOENT

import numpy as np

from naiad.errors import InvalidArgumentError, NaiadError, NotFoundError, UnavailableError
from naiad_kit.buffers import Buffer
from naiad_shared_memory.extents import check_extent, check_piece, check_room, host_bytes
from naiad_shared_memory.guard import GUARD, Guard
from naiad_shared_memory.mapping import Lender, Loan, Mapping, is_reserved, mapped

RESERVED_PREFIX = "triton_python_backend_shm_region_"
LARGE = 64 << 10
"""From so many bytes on a mapping costs less than a system call."""

_FOLDER = "/dev/shm/"  # noqa: S108 - where Linux keeps POSIX shared memory


class OpenSegment:
    """The descriptor of a segment, which is closed with the last region that uses this."""

    __slots__ = ("__weakref__", "descriptor")

    def __init__(self, descriptor: int) -> None:
        self.descriptor = descriptor
        weakref.finalize(self, os.close, descriptor)


OpenSegments = weakref.WeakValueDictionary[tuple[int, int], OpenSegment]
"""The segments that regions use, by device and inode."""


class SegmentMemory:
    """The `byte_size` bytes from `start` on of an open segment; the descriptor is closed with the last user of this.

    Unless it `lends`, models get copies of all inputs. Without a guard nothing is mapped.
    """

    def __init__(
        self,
        name: str,
        key: str,
        segment: OpenSegment | int,
        start: int,
        byte_size: int,
        guard: Guard | None = GUARD,
        *,
        lends: bool = True,
    ) -> None:
        self._segment = OpenSegment(segment) if isinstance(segment, int) else segment
        descriptor = self._segment.descriptor
        self.name = name
        self._key = key
        self._descriptor = descriptor
        self._start = start
        self._size = byte_size
        self._guard = guard
        self._lender = None if guard is None or not lends else Lender(guard, descriptor, start, byte_size)
        self._written: Mapping | None = None

    def check(self, offset: int, byte_size: int) -> None:
        """Raise InvalidArgumentError unless these bytes lie within the region."""
        check_piece(self.name, self._size, offset, byte_size)

    def read(self, offset: int, byte_size: int) -> np.ndarray:
        """A copy of these bytes. Raises InvalidArgumentError when they are not there, or not any more."""
        check_piece(self.name, self._size, offset, byte_size)
        array = host_bytes(self.name, byte_size)
        view = array.data
        position = self._start + offset
        done = 0
        try:
            while done < byte_size:
                read = os.preadv(self._descriptor, (view[done:],), position + done)
                if not read:
                    raise self.shrunk()
                done += read
        except OSError as error:
            raise _failed("read", self.name, error) from error
        return array

    def lend(self, offset: int, byte_size: int) -> Loan | None:
        """These bytes of the region, to be read where they are; None where they have to be copied."""
        return None if self._lender is None else self._lender.lend(offset, byte_size)

    def shrunk(self) -> InvalidArgumentError:
        """The error for a client that has shortened or removed its segment."""
        return InvalidArgumentError(
            f"shared memory region '{self.name}' is not all there any more: its segment '{self._key}' has "
            f"{os.fstat(self._descriptor).st_size} bytes now, and the region ends at {self._start + self._size}; "
            "unregister it and register what there is"
        )

    def write(self, offset: int, byte_size: int, content: Buffer, output: str) -> None:
        """Put the bytes there; `output` is the tensor that they are, for the error.

        Raises InvalidArgumentError when they are more than `byte_size` bytes, or the memory is not there any more.
        """
        check_piece(self.name, self._size, offset, byte_size)
        needed = len(content)
        check_room(self.name, output, needed, byte_size)
        if needed >= LARGE and self._write_mapped(offset, content):
            return
        position = self._start + offset
        try:
            if os.fstat(self._descriptor).st_size < position + needed:  # writing would make the segment longer
                raise self.shrunk()
            done = 0
            while done < needed:
                done += os.pwrite(self._descriptor, memoryview(content)[done:], position + done)
        except OSError as error:
            raise _failed("write", self.name, error) from error

    def _write_mapped(self, offset: int, content: Buffer) -> bool:
        """Write the bytes through a mapping; whether that could be done. Raises InvalidArgumentError."""
        guard = self._guard
        if guard is None or not guard.is_whole(self._descriptor, self._start + self._size):
            return False
        mapping = self._written
        if mapping is None:
            mapping = self._written = mapped(guard, self._descriptor, self._start, self._size, mmap.MAP_SHARED)
            if mapping is None:
                return False
        mapping.write(offset, content)
        if mapping.is_torn:
            self._written = None
            raise self.shrunk()
        return True


def open_segment(
    name: str, key: str, offset: int, byte_size: int, opened: OpenSegments, *, lends: bool
) -> SegmentMemory:
    """The region `name` over a part of the segment that `shm_open` knows as `key`, perhaps one of those `opened`.

    Raises NotFoundError without such a segment, InvalidArgumentError for an invalid key, a segment that is too small
    or may not be opened, and UnavailableError when the server has no descriptor left.
    """
    check_extent(name, offset, byte_size)
    path = _FOLDER + _file_name(name, key)
    try:
        # not blocking: else the owner of the file could hold the opening up with a lease on it
        descriptor = os.open(path, os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK)
    except (OSError, ValueError) as error:
        raise _unopened(key, error) from error
    try:
        status = os.fstat(descriptor)
        _check_segment(name, key, status, offset + byte_size)
        segment = opened.get((status.st_dev, status.st_ino))
        if segment is None:
            _check_descriptor(key, descriptor)
    except BaseException:
        os.close(descriptor)
        raise
    if segment is None:
        segment = opened[status.st_dev, status.st_ino] = OpenSegment(descriptor)
    else:
        os.close(descriptor)
    return SegmentMemory(name, key, segment, offset, byte_size, lends=lends)


def _check_descriptor(key: str, descriptor: int) -> None:
    """Raise UnavailableError where it is among those that are kept for others."""
    if is_reserved(descriptor):
        most = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
        raise UnavailableError(
            f"Unable to open shared memory region: '{key}': the server has nearly as many open files as it may have "
            f"({most}), and keeps the last quarter for connections; unregister regions, or raise 'ulimit -n'"
        )


def _file_name(name: str, key: str) -> str:
    """The segment's name in the folder of all segments; leading slashes count as one, as for `shm_open`."""
    segment_name = key.lstrip("/")
    if not segment_name or "/" in segment_name or segment_name in (".", ".."):
        raise InvalidArgumentError(
            f"cannot register shared memory region '{name}' - invalid shm key '{key}'; a key looks like '/name'"
        )
    if segment_name.startswith(RESERVED_PREFIX):
        raise InvalidArgumentError(
            f"cannot register shared memory region '{name}' with key '{key}' as the key contains the reserved prefix "
            f"'{RESERVED_PREFIX}'"
        )
    return segment_name


def _check_segment(name: str, key: str, status: os.stat_result, end: int) -> None:
    if not stat.S_ISREG(status.st_mode):
        raise InvalidArgumentError(f"Unable to open shared memory region: '{key}': it is not a shared memory segment")
    if status.st_size < end:
        raise InvalidArgumentError(
            f"failed to register shared memory region '{name}': invalid args: it ends at {end}, and the segment "
            f"'{key}' has {status.st_size} bytes"
        )


def _unopened(key: str, error: OSError | ValueError) -> NaiadError:
    message = f"Unable to open shared memory region: '{key}'"
    if isinstance(error, ValueError):
        return InvalidArgumentError(f"{message}: {error}")
    if error.errno == ENOENT:
        return NotFoundError(f"{message}: there is no such segment; make it before it is registered")
    if error.errno in (EMFILE, ENFILE, EAGAIN):
        return UnavailableError(f"{message}: {error.strerror}")
    return InvalidArgumentError(f"{message}: {error.strerror}; the server must be allowed to read and write it")


def _failed(verb: str, name: str, error: OSError) -> UnavailableError:
    return UnavailableError(f"failed to {verb} shared memory region '{name}': {error.strerror}")
