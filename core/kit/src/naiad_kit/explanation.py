"""Explanation of one request: a trace that collects its events, and forwards them to a real trace."""

from collections.abc import Iterable
from contextlib import AbstractContextManager, nullcontext
from time import monotonic_ns

from naiad.types import JoinedBatch, Trace
from naiad_kit.tracing import Attributes, EventTrace, add_attributes
from naiad_tensors.tensors import Tensor


class Explanation(EventTrace):
    """Collects the events of a request, in order, with the batches that it joined between them.

    `inner` is the trace that the request has besides; everything is passed on to it. `children` are the explanations of
    requests that this one caused. Events may come from any thread; they are read when the last one has come.
    """

    def __init__(self, model: str, version: int, inner: Trace | None = None) -> None:
        self.model = model
        self.events: list[tuple[str | JoinedBatch, int]] = []
        self.children: list[Explanation] = []
        self._version = version
        self._inner = inner

    @property
    def version(self) -> int:
        """The version that answers, 0 until it is known."""
        return self._version

    @version.setter
    def version(self, version: int) -> None:
        self._version = version
        if self._inner is not None:
            self._inner.version = version

    def record(self, event: str, ns: int | None = None) -> None:
        """Keep the event, and record it in the inner trace."""
        at = monotonic_ns() if ns is None else ns
        self.events.append((event, at))
        if self._inner is not None:
            self._inner.record(event, at)

    def executing(self, batch: JoinedBatch, ns: int) -> None:
        """Keep the batch, before the start of its execution."""
        self.events.append((batch, ns))
        super().executing(batch, ns)

    def tensors(self, activity: str, tensors: Iterable[Tensor]) -> None:
        """Pass them to the inner trace."""
        if self._inner is not None:
            self._inner.tensors(activity, tensors)

    def add_attributes(self, attributes: Attributes) -> None:
        """Add them to the inner trace, where it keeps any."""
        if self._inner is not None:
            add_attributes(self._inner, attributes)

    def child(self, model: str, version: int = 0, request_id: str = "") -> "Explanation":
        """One more of `children`, over a child of the inner trace."""
        inner = None if self._inner is None else self._inner.child(model, version, request_id)
        self.children.append(Explanation(model, version, inner))
        return self.children[-1]

    def current(self) -> AbstractContextManager[None]:
        """What the inner trace makes current."""
        return nullcontext() if self._inner is None else self._inner.current()

    def context(self) -> str:
        """The inner trace's."""
        return "" if self._inner is None else self._inner.context()

    def end(self) -> None:
        """End the inner trace; the events of this one stay."""
        if self._inner is not None:
            self._inner.end()
