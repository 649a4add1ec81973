"""A connection of the link: a socket with its frames, and the arenas of both sides. For any thread to write."""

import array
import os
import select
import socket
import struct
import threading
from collections.abc import Callable, Container, Iterable, Sequence
from contextlib import suppress

import numpy as np

from naiad_process_workers.arenas import FIRST_SHARED, LARGE_BLOCK, Arena, OwnArenas, ReadArenas, shared_block
from naiad_process_workers.bodies import BodyArenas
from naiad_process_workers.frames import (
    Frame,
    FrameReader,
    FrameWriter,
    LinkBrokenError,
    LinkClosedError,
    frame_bytes,
)

ARENA, RETIRED, FREED, UNUSED = 1, 2, 3, 4
"""The frames of the link itself: an arena with its descriptor, the end of an arena, and blocks that are free.

UNUSED are blocks that were taken for a message which is not sent: the other side frees them as if it had read them.
Their arena may be on its way there, so this side must not close it yet.
"""

_ARENA = struct.Struct("<Q")
_BLOCK = struct.Struct("<QQ")
_UNUSED = struct.Struct("<QQQ")
_READ = 1 << 16
_MOST_HELD = 256
"""The most descriptors that may wait for their frames; the writer sends 64 at once."""
_DESCRIPTORS = socket.CMSG_SPACE(64 * array.array("i").itemsize)
_CLOEXEC, _TRUNCATED = int(socket.MSG_CMSG_CLOEXEC), int(socket.MSG_CTRUNC)  # an operation on an enum takes 1 µs
_NOW = int(socket.MSG_CMSG_CLOEXEC | socket.MSG_DONTWAIT)
_AT_ONCE = int(socket.MSG_DONTWAIT | socket.MSG_NOSIGNAL)


class Memory:
    """The arenas between two processes, which their connections share. `bodies` are those that others read, too."""

    def __init__(self, writable: bool = False) -> None:
        """`writable` lets this process write to what it reads."""
        self.own = OwnArenas()
        self.read = ReadArenas(writable, self._lent_bytes)
        self.bodies: BodyArenas | None = None
        self.lent: dict[tuple[int, int], list[np.ndarray]] = {}
        self._lock = threading.Lock()

    def lend(self, key: tuple[int, int], array: np.ndarray) -> None:
        """Keep an array in an arena of `bodies` that the other process is sent, until that says it is free there."""
        with self._lock:
            self.lent.setdefault(key, []).append(array)

    def _lent_bytes(self, number: int, offset: int, size: int) -> np.ndarray:
        """The bytes of an array that the other process has; read-only. Raises LinkBrokenError if it has none there."""
        with self._lock:
            for array in self.lent.get((number, offset), ()):
                if array.nbytes >= size:
                    break
            else:
                raise LinkBrokenError(f"a block of {size} bytes at {offset} of arena {number} was not lent")
        content = array.reshape(-1).view(np.uint8)[:size]
        content.flags.writeable = False
        self.read.free((number, offset), size)
        return content

    def returned(self, key: tuple[int, int]) -> bool:
        """The other process has no view of an array any more; whether it is large.

        Raises LinkBrokenError if it was not lent.
        """
        with self._lock:
            arrays = self.lent.get(key)
            if not arrays:
                raise LinkBrokenError(f"a block at {key[1]} of arena {key[0]} was not lent")
            array = arrays.pop()
            if not arrays:
                del self.lent[key]
        return array.nbytes >= LARGE_BLOCK  # its block is free when it is gone, and the lock is free

    def close(self) -> None:
        """Free what this side owns, and unmap what it reads when the last array is gone."""
        self.own.close()
        self.read.close()
        self.lent.clear()
        self.bodies = None


class Connection:
    """One socket of the link. Everything but `receive` is for any thread.

    Writing waits until the socket takes what is written, unless `write_later` was called.
    """

    def __init__(self, link: socket.socket, memory: Memory, carriers: Container[int] = (ARENA,)) -> None:
        """`carriers` are the kinds of the frames that may come with descriptors."""
        self.socket = link
        self.memory = memory
        self._on_blocked: Callable[[], None] | None = None
        self._lock = threading.RLock()
        self._is_writing = False
        self._writer = FrameWriter()
        self._reader = FrameReader(carriers)
        self._held: set[int] = set()  # descriptors that came and were not claimed
        self._buffers = [bytearray(_READ)]
        self._bytes = memoryview(self._buffers[0])
        self._announced: dict[int, Arena] = {}  # those of bodies

    def write_later(self, on_blocked: Callable[[], None] | None) -> None:
        """Call `on_blocked` when a write would block; `flush` is to be called when it would not. None: wait again."""
        self._on_blocked = on_blocked

    def fileno(self) -> int:
        """The descriptor of the socket."""
        return self.socket.fileno()

    def send(self, kind: int, number: int = 0, body: bytes = b"", kept: Sequence[np.ndarray] = ()) -> None:
        """Write a frame, and with it all that waits. Raises LinkClosedError.

        `kept` are arrays of the other process whose locations it has: they stay until that has read the frame, since
        what says that they are free may go over another connection and overtake it.
        """
        for each in kept:
            key = shared_block(each)
            if key is not None:
                self.memory.lend(key, each)
        with self._lock:
            freed = self._freed() if self.memory.read.freed else b""
            if not self._writer.waiting and not self._is_writing:
                content = frame_bytes(kind, number, body)
                self._send_now(frame_bytes(FREED, 0, freed) + content if freed else content)
                return
            if freed:
                self._writer.put(FREED, 0, freed)
            self._writer.put(kind, number, body)
            self._flush()

    def put(self, kind: int, number: int, body: bytes, descriptors: tuple[int, ...] = ()) -> None:
        """Write a frame with the next one; the descriptors stay open until it is written."""
        with self._lock:
            self._writer.put(kind, number, body, descriptors)

    def unused(self, blocks: Iterable[tuple[int, int, int]]) -> None:
        """Free blocks of a message that is not sent, by arena, offset and size, with the next frame that is."""
        self.put(UNUSED, 0, b"".join(_UNUSED.pack(*block) for block in blocks))

    def flush(self) -> bool:
        """Write what waits; whether all of it was written. Raises LinkClosedError."""
        with self._lock:
            if self.memory.read.freed and (freed := self._freed()):
                self._writer.put(FREED, 0, freed)
            return self._flush()

    def wait_and_flush(self) -> None:
        """Write what waits, and wait for that. Raises LinkClosedError."""
        while not self.flush():
            self._wait_to_write()

    def announce(self, arena: Arena) -> None:
        """Hand an arena to the other side; it goes with the next frame."""
        with self._lock:
            self._writer.put(ARENA, arena.number, _ARENA.pack(arena.size), (arena.descriptor,))

    def lend(self, array: np.ndarray) -> tuple[int, int] | None:
        """The arena and offset of an array that is in one of `Memory.bodies`, which is kept; None if it is not.

        In the process that reads these arenas, an array that came in one is there too. Its block may not be freed
        before a frame with the location is written: keep the array until then.
        """
        bodies = self.memory.bodies
        if bodies is None:
            return shared_block(array)
        if not array.flags.writeable:  # another process may read it, and this one could write to it
            return None
        location = bodies.locate(array)
        if location is None:
            return None
        arena, offset = location
        if arena.number not in self._announced:
            with self._lock:
                self.announce(arena)
                self._announced[arena.number] = arena
            bodies.read_by(self)
        self.memory.lend((arena.number, offset), array)
        return arena.number, offset

    def retire_closed(self) -> None:
        """Have the other side unmap the arenas of bodies that are closed. For any thread."""
        with self._lock:
            closed = [number for number, arena in self._announced.items() if arena.closed]
            for number in closed:
                del self._announced[number]
            if closed:
                self._retire(closed)

    def receive(self, wait: bool = True) -> list[Frame]:
        """The frames that have come; waits for bytes if the socket does and `wait`. The link's own are taken out.

        Raises LinkClosedError at the end, LinkBrokenError for what is no frame, TimeoutError.
        """
        try:
            count, ancillary, flags, _ = self.socket.recvmsg_into(
                self._buffers, _DESCRIPTORS, _CLOEXEC if wait else _NOW
            )
        except BlockingIOError:
            return []
        except TimeoutError:
            raise
        except OSError as error:
            raise LinkClosedError(str(error)) from error
        descriptors = _descriptors(ancillary) if ancillary else ()
        if descriptors:
            self._held.update(descriptors)
        if flags & _TRUNCATED:
            raise LinkBrokenError("the process that reads it has as many files open as it may; raise ulimit -n")
        if len(self._held) > _MOST_HELD:
            raise LinkBrokenError("descriptors came without frames")
        if not count:
            raise LinkClosedError("end of file")
        frames = self._reader.feed(bytes(self._bytes[:count]), descriptors)
        return [frame for frame in frames if frame.kind > UNUSED or not self._took(frame)]

    def claim(self, descriptor: int) -> int:
        """A descriptor that came with a frame, which the caller closes from now on."""
        self._held.discard(descriptor)
        return descriptor

    def close(self) -> None:
        """Close the socket, and the descriptors that were not claimed; free the buffer."""
        self._on_blocked = None
        self.socket.close()
        _close(self._held)
        self._held = set()
        self._buffers, self._bytes = [], memoryview(b"")

    def _took(self, frame: Frame) -> bool:
        """Whether it was a frame of the link itself, which is done then."""
        memory = self.memory
        try:
            if frame.kind == ARENA:
                (size,) = _ARENA.unpack(frame.body)
                (descriptor,) = frame.descriptors
                memory.read.open(frame.number, size, self.claim(descriptor))
            elif frame.kind == RETIRED:
                memory.read.retire(frame.number)
            elif frame.kind == FREED:
                own: list[tuple[int, int]] = []
                has_large = False
                for block in _BLOCK.iter_unpack(frame.body):
                    if block[0] < FIRST_SHARED:
                        own.append(block)
                    elif memory.returned(block):
                        has_large = True
                retired = memory.own.free(own) if own else ()
                if retired or has_large:
                    self._retire(retired)
            elif frame.kind == UNUSED:
                for number, offset, size in _UNUSED.iter_unpack(frame.body):
                    memory.read.free((number, offset), size)
            else:
                return False
        except (struct.error, ValueError) as error:
            raise LinkBrokenError(f"a frame of kind {frame.kind} cannot be read: {error}") from error
        return True

    def _retire(self, numbers: Iterable[int]) -> None:
        """Let the other side unmap these arenas, and give back blocks, at once: no other frame may follow for long."""
        with self._lock, suppress(LinkClosedError):  # what came before the end is still to be read
            for number in numbers:
                self._writer.put(RETIRED, number, b"")
            self.flush()

    def _freed(self) -> bytes:
        """The body of a frame that gives back the blocks whose arrays are gone; empty without any."""
        freed = self.memory.read.freed
        blocks: list[bytes] = []
        try:
            while freed:
                blocks.append(_BLOCK.pack(*freed.popleft()))
        except IndexError:  # the garbage collector sent amid this, and took the rest
            pass
        return b"".join(blocks)

    def _send_now(self, content: bytes) -> None:
        """Write frames while no other waits: the usual case."""
        self._is_writing = True
        try:
            count = self.socket.send(content, _AT_ONCE)
        except BlockingIOError:
            count = 0
        except OSError as error:
            raise LinkClosedError(str(error)) from error
        finally:
            self._is_writing = False
        if count < len(content):
            self._writer.put_first(content[count:])
        if self._writer.waiting:  # the garbage collector may have sent, too
            self._flush()

    def _flush(self) -> bool:
        if self._is_writing:  # the garbage collector sends amid a write, which goes on with its frame
            return True
        self._is_writing = True
        try:
            return self._write()
        finally:
            self._is_writing = False

    def _write(self) -> bool:
        writer = self._writer
        while writer.waiting:
            buffers, descriptors = writer.take()
            ancillary = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", descriptors))] if descriptors else []
            try:
                count = self.socket.sendmsg(buffers, ancillary, _AT_ONCE)
            except BlockingIOError:
                if self._on_blocked is not None:
                    self._on_blocked()
                    return False
                self._wait_to_write()
                continue
            except OSError as error:
                raise LinkClosedError(str(error)) from error
            writer.sent(count)
        return True

    def _wait_to_write(self) -> None:
        poll = select.poll()
        poll.register(self.socket, select.POLLOUT)
        poll.poll()


def _descriptors(ancillary: list[tuple[int, int, bytes]]) -> tuple[int, ...]:
    numbers = array.array("i")
    for level, kind, content in ancillary:
        if level == socket.SOL_SOCKET and kind == socket.SCM_RIGHTS:
            numbers.frombytes(content[: len(content) - len(content) % numbers.itemsize])
    return tuple(numbers)


def _close(descriptors: Iterable[int]) -> None:
    for descriptor in descriptors:
        with suppress(OSError):
            os.close(descriptor)
