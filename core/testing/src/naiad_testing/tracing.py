"""Fake trace and fake tracing service, which record in memory."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager

from naiad_kit.tracing import Attributes, EventTrace, TraceSettings
from naiad_tensors.tensors import Tensor


class FakeTrace(EventTrace):
    """A trace that records everything.

    `events` are its events in order, and `end` for each call of it; `times` are those that came with a time, by event;
    `shapes` are the tensors' by activity; `is_current` says whether a block of `current` runs; `attributes` are those
    of frontends.
    """

    def __init__(self, model: str = "", version: int = 0, request_id: str = "", context: str = "") -> None:
        self.model = model
        self.version = version
        self.request_id = request_id
        self.events: list[str] = []
        self.times: dict[str, int] = {}
        self.shapes: dict[str, list[tuple[int, ...]]] = {}
        self.children: list[FakeTrace] = []
        self.is_current = False
        self.attributes: dict[str, str | int] = {}
        self._context = context

    def record(self, event: str, ns: int | None = None) -> None:
        """Remember it."""
        self.events.append(event)
        if ns is not None:
            self.times[event] = ns

    def add_attributes(self, attributes: Attributes) -> None:
        """Remember them."""
        self.attributes.update(attributes)

    def tensors(self, activity: str, tensors: Iterable[Tensor]) -> None:
        """Remember the shapes."""
        self.shapes.setdefault(activity, []).extend(tensor.shape for tensor in tensors)

    def child(self, model: str, version: int = 0, request_id: str = "") -> "FakeTrace":
        """One more of `children`."""
        self.children.append(FakeTrace(model, version, request_id))
        return self.children[-1]

    @contextmanager
    def current(self) -> Iterator[None]:
        """Set `is_current` while the block runs."""
        self.is_current = True
        try:
            yield
        finally:
            self.is_current = False

    def context(self) -> str:
        """What the test gave it."""
        return self._context

    def end(self) -> None:
        """Remember it."""
        self.events.append("end")


class FakeTracing:
    """The service `tracing` for servers of tests: traces every request while it is `active`.

    `samples` are the arguments of `sample`, `traces` what it returned. `update` checks nothing.
    """

    name = "tracing"
    extensions = ("trace",)

    def __init__(self, active: bool = False) -> None:
        self.active = active
        self.samples: list[tuple[str, int, str, str, str]] = []
        self.traces: list[FakeTrace] = []
        self._settings: dict[str, str | tuple[str, ...]] = {"trace_level": ("TIMESTAMPS",), "trace_rate": "1"}

    async def start(self, server: object) -> None:
        """Nothing to do."""

    async def stop(self, seconds: float) -> None:
        """Nothing to do."""

    def settings(self, model: str = "") -> TraceSettings:
        """The same for all models."""
        return dict(self._settings)

    def update(self, changes: Mapping[str, Sequence[str] | None], model: str = "") -> TraceSettings:
        """Take the changes for all models; what is cleared is forgotten."""
        for name, values in changes.items():
            self._settings.pop(name, None)
            if values:
                self._settings[name] = tuple(values) if name == "trace_level" else values[0]
        return self.settings()

    def sample(
        self, model: str, version: int, request_id: str, traceparent: str = "", tracestate: str = ""
    ) -> FakeTrace:
        """One more of `traces`."""
        self.samples.append((model, version, request_id, traceparent, tracestate))
        self.traces.append(FakeTrace(model, version, request_id))
        return self.traces[-1]
