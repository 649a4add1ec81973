"""The seams of the server: protocols of what a plugin may put around models, and beside them.

The hooks in `naiad.hookspecs` hand these objects out at start-up or when a model is loaded.
"""

import asyncio
from collections.abc import Callable, Collection, Coroutine, Sequence
from concurrent.futures import Future
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol, TypeVar, runtime_checkable

from naiad.server import Deliver, ServerApi, ServiceT, SubmittedRequest

if TYPE_CHECKING:
    from naiad.backend import BackendTraits, Batch, Instance, ModelContext, Placement
    from naiad.cache import CacheCounters
    from naiad.errors import NaiadError
    from naiad.metrics import MetricFamily
    from naiad.options import Settings
    from naiad.types import Request
    from naiad_config import ModelConfig

# RequestStage

Submit = Callable[["Request", Deliver, bool], SubmittedRequest]
"""Takes a request in and returns at once; the bool says that the caller takes several responses.

Nothing is delivered before it returns. Raises NaiadError for what is refused at once.
"""


class HeldRequest(SubmittedRequest, Protocol):
    """A request that a stage answers itself, or passes on later. Set `over` when the last outcome is delivered."""

    over: bool


class StageCounters(Protocol):
    """Counts, in the statistics of the version, what a stage does with requests that it does not pass on.

    Times are nanoseconds from when the stage got the request.
    """

    @property
    def cache(self) -> "CacheCounters":
        """The counters of the response cache, which belong to the version from the first use on."""
        ...

    def answered(self, total_ns: int) -> None:
        """A request was answered, and waited in no queue."""
        ...

    def rejected(self, total_ns: int) -> None:
        """A request failed because it waited too long."""
        ...

    def failed(self, total_ns: int) -> None:
        """A request failed for another reason."""
        ...

    def cancelled(self, total_ns: int) -> None:
        """The caller of a request went away."""
        ...


class FindService(Protocol):
    """Finds a service of the server."""

    def __call__(self, kind: type[ServiceT]) -> ServiceT:
        """As `ServerApi.service`."""
        ...


@dataclass(frozen=True, slots=True)
class StageContext:
    """What a stage may know and use: the version that it is for, the options of the server, and the version's counters.

    `service(kind)` finds a service of the server.
    `hold(request, deliver, cancelled)` is the request that a stage gives to a caller while it holds the request itself;
    `cancelled` is called when the caller goes away.
    """

    model: "ModelContext"
    settings: "Settings"
    counters: StageCounters
    hold: "Callable[[Request, Deliver, Callable[[], None]], HeldRequest]"
    service: FindService


@runtime_checkable
class RequestStage(Protocol):
    """A layer around one model version; made by the hook `naiad_stages` whenever a version is loaded.

    With a `parameter`, a stage gets the requests of clients that have the request parameter of that name, before they
    are checked, and passes on those whose value asks for nothing. Without one (""), it gets every request to the
    version, steps of ensembles and calls of models included, once it was checked and before it is queued. Of several
    stages of either kind, the one with the smallest `order` gets a request first. `host_only` says that the stage reads
    the tensors of requests or responses: these are in host memory then, as copies. Requests that pass no stage do not
    pay for any. Every method, and what `wrap` returns, is called on the event loop's thread and must return at once.
    """

    parameter: str
    order: int
    host_only: bool

    def wrap(self, submit: Submit) -> Submit:
        """The way of requests through this stage; `submit` is the way on to the version. Called once, before any.

        What it returns gives back what `submit` gave, or a `StageContext.hold`.
        """
        ...

    @property
    def outstanding(self) -> int:
        """How many requests the stage holds, so that the version does not know of them; not those that it passed on."""
        ...

    async def drained(self) -> None:
        """Return when the stage holds no request."""
        ...

    def fail_all(self, error: "NaiadError") -> None:
        """Deliver that error for every request that the stage holds."""
        ...


# ExecutionGate


class Suspension(Protocol):
    """One wait of an execution that gives up its grant until the wait is over; an execution may have several."""

    @property
    def is_last(self) -> bool:
        """Whether this is the only open suspension of its execution."""
        ...

    def resume(self, go_on: Callable[[], None]) -> None:
        """The wait is over: `go_on` is called, perhaps at once, when the execution holds its grant again.

        Called once; `go_on` returns at once.
        """
        ...


class ExecutionGate(Protocol):
    """Decides when the slots of one model version may execute. Every method is for the event loop's thread.

    A slot executes only while it holds a grant. `want`, `started` and `release` only note what they say; the `grant`
    that follows them lets slots go, so that a slot that gives back and wants again competes with all others.
    """

    def enter(self, placements: "Sequence[Placement]") -> None:
        """The version has one slot for each of these, numbered from 0 up: the placement of the slot's instance.

        Called once, when all instances are made, before any other method but `close`.
        """
        ...

    def want(self, slot: int, granted: Callable[[int], None]) -> None:
        """The slot is free and there may be work for it; `granted(slot)` is called, by a `grant`, when it may execute.

        Does nothing for a slot that waits already or holds a grant.
        """
        ...

    def started(self, slot: int) -> None:
        """The slot uses its grant for an execution; a grant that is released without this does not count as one."""
        ...

    def release(self, slot: int) -> None:
        """The slot neither holds a grant nor waits for one: its execution is over, it is lost or has no work."""
        ...

    def grant(self) -> None:
        """Call `granted` of the slots that may execute now, of whichever version."""
        ...

    def suspend(self, slot: int) -> Suspension:
        """The execution at the slot waits for something that may itself need grants, and gives up its own meanwhile.

        Such a wait is a call of another model, or a caller that reads responses slowly.
        """
        ...

    def close(self) -> None:
        """The version is gone: nothing is granted any more, and suspended executions go on at once. Harmless again."""
        ...


@runtime_checkable
class GateFactory(Protocol):
    """Makes the gates of all model versions of a server, which compete for the same resources.

    Made by the hook `naiad_gates`. Every method is for the event loop's thread.
    """

    def admit(self, config: "ModelConfig", placements: "Sequence[Placement]") -> ExecutionGate | None:
        """The gate of a version with these instances; None when its executions never wait.

        Called before the instances are made. Raises InvalidArgumentError when they could never execute.
        """
        ...

    def metrics(self) -> "Sequence[MetricFamily]":
        """Metrics of all gates as they stand, always of the same names, which models cannot use for their own."""
        ...


# WorkerKind: how an instance is run


class WorkItem(Protocol):
    """One batch that a worker executes, and when (`time.monotonic_ns`, else 0) it began and had its responses."""

    batch: "Batch"
    started_ns: int
    done_ns: int


_T = TypeVar("_T")
ItemT = TypeVar("ItemT", bound=WorkItem)


class WorkerHost(Protocol[ItemT]):
    """The model version that a worker runs one instance for."""

    @property
    def loop(self) -> asyncio.AbstractEventLoop:
        """The event loop of the server."""
        ...

    def make_instance(self) -> "Instance":
        """Make the instance and warm it up, on the thread that will execute it. Raises NaiadError only."""
        ...

    def close_instance(self, instance: "Instance") -> None:
        """Close the instance, on the thread that executed it. Raises nothing."""
        ...

    def execute(self, instance: "Instance", item: ItemT, executed: Callable[[ItemT], None]) -> None:
        """Execute the batch and make its responses; a failure is the batch's own.

        `executed` is called once: before this returns, or later from any thread when the instance answers later.
        Raises what ends the instance, such as SystemExit.
        """
        ...

    def report_death(self, error: BaseException) -> str:
        """Log what ended the instance. Returns the reason for `died`. For any thread."""
        ...

    def done(self, item: ItemT) -> None:
        """Take an executed batch back. For the event loop's thread, outside of `Worker.execute`."""
        ...

    def died(self, reason: str, lost: Sequence[ItemT]) -> None:
        """The worker has ended with its instance, and these batches are lost. For the event loop's thread."""
        ...


class Worker(Protocol[ItemT]):
    """Runs one instance: makes it, executes its batches in order and closes it, all on one thread.

    `started` has the instance, or why there is none; `ended` is set when everything is over. Each batch goes back to
    the host exactly once, in `done` or among those that are lost in `died`. Every method is for the event loop's thread
    and never blocks.
    """

    name: str
    started: "Future[Instance]"
    ended: Future[None]

    @property
    def executing(self) -> Collection[ItemT]:
        """The batches that it has not handed back."""
        ...

    @property
    def busy_since_ns(self) -> int:
        """Since when (`time.monotonic_ns`) the oldest batch executes, 0 when none does."""
        ...

    def start(self) -> None:
        """Begin to make the instance."""
        ...

    def execute(self, item: ItemT) -> None:
        """Execute a batch after the ones before."""
        ...

    def instruct(self, instruction: "Callable[[Instance], None]") -> None:
        """Call that with the instance, after the batches before. What it raises ends the instance."""
        ...

    def stop(self) -> None:
        """Close the instance after the batches before."""
        ...


class MakeWorker(Protocol):
    """Makes the worker of one instance."""

    def __call__(self, placement: "Placement", host: WorkerHost[ItemT]) -> Worker[ItemT]:
        """The worker, which `Worker.start` starts. Called on the event loop's thread."""
        ...


@runtime_checkable
class WorkerKind(Protocol):
    """One way to run instances. `choice` is the value of the model parameter `execute_on` that asks for it, or ""."""

    name: str
    choice: str

    def worker_for(self, config: "ModelConfig", traits: "BackendTraits", execute_on: str) -> MakeWorker | None:
        """How to run the instances of that model; None leaves it to another kind. Called when a model is loaded.

        `execute_on` is what the model asks for, "" when it leaves that to the server: then the kinds of plugins are
        asked first. Raises InvalidArgumentError for a model that cannot be run as it asks.
        """
        ...


@runtime_checkable
class LoopRunner(Protocol):
    """Runs the event loop of a process, perhaps on changing threads; made by the hook `naiad_runners`.

    `naiad serve` runs its server with it. A program does the same with `Server(runner=...)`, inside of `run`.
    """

    def run(self, main: Coroutine[Any, Any, _T]) -> _T:
        """Run the coroutine on the event loop until it returns; blocks the calling thread. Raises what it raises."""
        ...

    def started(self) -> None:
        """The server has started: requests and models compete for the interpreter from now on."""
        ...

    def short_switch_interval(self) -> AbstractContextManager[None]:
        """Let no thread keep the interpreter long while the block runs, once the server has started."""
        ...

    def release_loop(self) -> None:
        """The code on the calling thread is about to wait for the event loop: let another thread run it."""
        ...


# Metrics


@runtime_checkable
class MetricSource(Protocol):
    """What a gate factory or a service may offer as well: metrics of its own, for the server's."""

    def metrics(self) -> "Sequence[MetricFamily]":
        """The metrics as they stand, always of the same names, which models cannot use for their own."""
        ...


# Services


@runtime_checkable
class Service(Protocol):
    """One object for the whole server, such as the tracer or the shared memory regions.

    Made by the hook `naiad_services`. Frontends and plugins get it from `server.service(Kind)`, where `Kind` is a
    runtime-checkable protocol, or a class, that has the same `name` (`shared-memory`) as a class attribute.
    """

    name: str

    async def start(self, server: ServerApi) -> None:
        """Begin. Called once on the event loop, before any model is loaded and any frontend listens.

        Raises NaiadError when the server cannot run with the options that concern this service.
        """
        ...

    async def stop(self, seconds: float) -> None:
        """Write what is to be kept, and free everything, within so many seconds.

        Called once on the event loop, after the frontends and the models have ended; it is cancelled when it is late.
        """
        ...
