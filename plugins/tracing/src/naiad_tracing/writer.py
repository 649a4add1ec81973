"""The writer thread of trace files: disk writes block neither the event loop nor a model."""

import logging
import queue
import threading
from collections.abc import Sequence
from dataclasses import dataclass

from naiad.errors import UsageError
from naiad_tracing.array_file import ArrayFile
from naiad_tracing.trace_records import TraceRecord, record_text

_logger = logging.getLogger("naiad")

_MOST_BYTES = 64 * 2**20
_GATHER_SECONDS = 0.05
"""Seconds for which the thread collects traces before it writes: waking it for each would take time from models."""


class Stream:
    """Traces of one scope: `frequency` of them go into each of its numbered files, or all into the one without number.

    `file` and `written` are for the writer's thread.
    """

    def __init__(self, frequency: int) -> None:
        self.frequency = frequency
        self.file: ArrayFile | None = None
        self.written = 0


class Family:
    """A request's trace and those that it caused. The writer sets `file` with the first, for those that end later."""

    def __init__(self) -> None:
        self.file: ArrayFile | None = None


@dataclass(frozen=True, slots=True)
class _Parcel:
    stream: Stream
    records: Sequence[TraceRecord]
    byte_size: int
    family: Family


class TraceWriter:
    """Writes to `path`, or to `path.0`, `path.1`, … where a stream has a frequency.

    The queue of the thread is bounded: traces that do not fit are lost, and so are those that the disk does not take.
    Both are logged.
    """

    def __init__(self, path: str, most_bytes: int = _MOST_BYTES) -> None:
        self._path = path
        self._most_bytes = most_bytes
        self._inbox: queue.SimpleQueue[_Parcel | None] = queue.SimpleQueue()
        self._lock = threading.Lock()
        self._waiting_bytes = 0
        self._lost = 0
        self._failing = False
        self._next_number = 0
        self._ending = threading.Event()
        self._thread = threading.Thread(target=self._run, name="naiad-traces", daemon=True)

    def open(self) -> None:
        """Start. Raises UsageError when the file cannot be written."""
        try:
            self._whole = ArrayFile(self._path)
        except OSError as error:
            raise UsageError(
                f"trace file {self._path} cannot be written: {error.strerror}; "
                "give one in a folder that can be, with --trace-config triton,file=FILE"
            ) from error
        self._thread.start()

    def put(self, stream: Stream, records: Sequence[TraceRecord], family: Family) -> None:
        """Write a trace and those it caused, which belong in one file, as all do that are put with the same `family`.

        Never waits; for any thread.
        """
        byte_size = sum(record.byte_size for record in records)
        with self._lock:
            if self._waiting_bytes and self._waiting_bytes + byte_size > self._most_bytes:
                self._lost += 1
                return
            self._waiting_bytes += byte_size
        self._inbox.put(_Parcel(stream, records, byte_size, family))

    def close(self, seconds: float) -> bool:
        """Write what waits and end; whether that took no longer than so many seconds. Blocks so long."""
        self._ending.set()
        self._inbox.put(None)
        self._thread.join(max(0.0, seconds))
        return not self._thread.is_alive()

    def _run(self) -> None:
        ended = False
        while not ended:
            gathered = [self._inbox.get()]
            self._ending.wait(_GATHER_SECONDS)
            while not self._inbox.empty():
                gathered.append(self._inbox.get())
            ended = None in gathered
            self._write_all([parcel for parcel in gathered if parcel is not None])

    def _write_all(self, parcels: Sequence[_Parcel]) -> None:
        try:
            self._append(self._whole, [parcel for parcel in parcels if not parcel.stream.frequency])
            for parcel in parcels:
                if parcel.stream.frequency:
                    self._write_numbered(parcel)
        except OSError as error:
            if not self._failing:
                _logger.error(
                    "traces cannot be written to %s and are lost until they can: %s", self._path, error.strerror
                )
            self._failing = True
        except Exception:
            _logger.exception("writing traces failed; some are lost")
        else:
            self._failing = False
        with self._lock:
            self._waiting_bytes -= sum(parcel.byte_size for parcel in parcels)
            lost, self._lost = self._lost, 0
        if lost:
            _logger.warning("%d traces are lost: %s cannot be written as fast as they come", lost, self._path)

    def _write_numbered(self, parcel: _Parcel) -> None:
        stream, family = parcel.stream, parcel.family
        if family.file is not None:
            self._append(family.file, [parcel])
            return
        if stream.file is None:
            stream.file = ArrayFile(f"{self._path}.{self._next_number}")
            stream.written = 0
            self._next_number += 1
        family.file = stream.file
        self._append(stream.file, [parcel])
        stream.written += 1
        if stream.written >= stream.frequency:
            stream.file = None

    def _append(self, file: ArrayFile, parcels: Sequence[_Parcel]) -> None:
        if parcels:
            file.append([record_text(record) for parcel in parcels for record in parcel.records])
