"""Trace mode `triton`: writes traces to files as JSON."""

import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from itertools import count
from time import monotonic_ns
from weakref import WeakKeyDictionary

from naiad_kit.tracing import EventTrace
from naiad_tensors.tensors import Tensor
from naiad_tracing.recording import Caller, Subject
from naiad_tracing.sampling import Sampler
from naiad_tracing.trace_records import TensorRecord, Timestamp, TraceRecord, tensor_records
from naiad_tracing.writer import Family, Stream, TraceWriter


class FileTrace(EventTrace):
    """A `naiad.types.Trace` that collects events and tensors until it ends, and hands them over then.

    Its child traces are handed over with it; a child that outlives it is handed over on its own, for the same file.
    """

    def __init__(
        self,
        subject: Subject,
        levels: Sequence[str],
        numbers: Iterator[int],
        hand_over: Callable[[Sequence[TraceRecord]], None],
    ) -> None:
        self.version = subject.version
        self.wants_timestamps = "TIMESTAMPS" in levels
        self.wants_tensors = "TENSORS" in levels
        self._subject = subject
        self._levels = levels
        self._numbers = numbers
        self._number = next(numbers)
        self._hand_over = hand_over
        self._lock = threading.Lock()
        self._ended = False
        self._entries: list[Timestamp | TensorRecord] = []
        self._children: list[TraceRecord] = []

    def record(self, event: str, ns: int | None = None) -> None:
        """Keep the event."""
        if self.wants_timestamps and not self._ended:
            self._entries.append(Timestamp(monotonic_ns() if ns is None else ns, event))

    def tensors(self, activity: str, tensors: Iterable[Tensor]) -> None:
        """Keep copies of these tensors."""
        if self.wants_tensors and not self._ended:
            self._entries.extend(tensor_records(monotonic_ns(), activity, tensors))

    def child(self, model: str, version: int = 0, request_id: str = "") -> "FileTrace":
        """A trace with a number of its own that names this one as its parent."""
        subject = Subject(model, version, request_id, self._number)
        return FileTrace(subject, self._levels, self._numbers, self._take_in)

    def current(self) -> AbstractContextManager[None]:
        """Nothing: there are no spans."""
        return nullcontext()

    def context(self) -> str:
        """Nothing: other programs cannot add to a file."""
        return ""

    def end(self) -> None:
        """Hand over everything recorded."""
        with self._lock:
            if self._ended:
                return
            self._ended = True
        about = self._subject
        own = TraceRecord(self._number, about.parent, about.model, self.version, about.request_id, tuple(self._entries))
        self._hand_over([own, *self._children])

    def _take_in(self, records: Sequence[TraceRecord]) -> None:
        with self._lock:
            if not self._ended:
                self._children.extend(records)
                return
        self._hand_over(records)


class FileRecording:
    """Makes the traces of the mode `triton` and has them written to `path`.

    Raises UsageError when the file cannot be written.
    """

    takes_callers = False

    def __init__(self, path: str) -> None:
        self._writer = TraceWriter(path)
        self._writer.open()
        self._numbers = count(1)
        self._streams: WeakKeyDictionary[Sampler, Stream] = WeakKeyDictionary()

    def records(self, levels: Sequence[str]) -> bool:
        """Whether there is anything to keep at these levels."""
        return bool(levels)

    def caller(self, traceparent: str, tracestate: str) -> None:
        """None: files hold no spans of callers."""

    def begin(self, subject: Subject, sampler: Sampler, caller: Caller | None) -> FileTrace:
        """A trace that goes where those of the sampler's scope go: each time its settings change, to another file."""
        stream = self._streams.get(sampler)
        if stream is None:
            stream = self._streams[sampler] = Stream(sampler.selection.log_frequency)
        write = partial(self._writer.put, stream, family=Family())
        return FileTrace(subject, sampler.selection.levels, self._numbers, write)

    def close(self, seconds: float) -> bool:
        """Write all that ended; whether that took no longer than so many seconds."""
        return self._writer.close(seconds)
