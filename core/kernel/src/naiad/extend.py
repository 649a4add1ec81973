"""The seams of the server: request stages, execution gates, kinds of workers, runners of the event loop, services."""

import asyncio
from collections.abc import Callable, Collection, Coroutine, Sequence
from concurrent.futures import Future
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol, TypeVar, runtime_checkable

from naiad.in_flight import Occupant, WatchedRequest
from naiad.server import Deliver, ServerApi, ServiceT, SubmittedRequest

if TYPE_CHECKING:
    from naiad.backend import Backend, BackendTraits, Batch, Instance, ModelContext, Placement
    from naiad.errors import NaiadError
    from naiad.options import Settings
    from naiad.types import Request
    from naiad_config import ModelConfig
    from naiad_statistics.versions import VersionCounters

Submit = Callable[["Request", Deliver, bool], SubmittedRequest]
"""Submits a request; the bool says that the caller takes several responses.

Returns at once, and delivers nothing before it returns. Raises NaiadError for a request that is refused at once.
"""


class HeldRequest(SubmittedRequest, Protocol):
    """A request that a stage answers or passes on later. Set `over` with the last outcome."""

    over: bool


class FindService(Protocol):
    """Finds a service of the server."""

    def __call__(self, kind: type[ServiceT]) -> ServiceT:
        """As `ServerApi.service`."""


@dataclass(frozen=True, slots=True)
class StageContext:
    """The version that a stage is for, the options and services of the server, and the version's counters.

    `hold(request, deliver, cancelled)` makes the result of `submit` for a request that the stage keeps; `cancelled` is
    called when the caller cancels it.
    """

    model: "ModelContext"
    settings: "Settings"
    counters: "VersionCounters"
    hold: "Callable[[Request, Deliver, Callable[[], None]], HeldRequest]"
    service: FindService


def requests_stage(value: object) -> bool:
    """Whether that value of a stage's parameter asks for the stage: true, 1, or these as text."""
    return value in (True, "1") or (isinstance(value, str) and value.lower() == "true")


class HoldsRequests(Protocol):
    """What holds requests: a stage, or all stages of a version. Every method is for the event loop's thread."""

    @property
    def outstanding(self) -> int:
        """How many requests it holds, those that it passed on not included."""

    async def drained(self) -> None:
        """Return when it holds no request."""

    def fail_all(self, error: "NaiadError") -> None:
        """Deliver that error for every request that it holds."""


@runtime_checkable
class RequestStage(HoldsRequests, Protocol):
    """A layer around one model version; the hook `naiad_stages` makes it when the version is loaded.

    A stage with a `parameter` gets the clients' requests that have that request parameter, before they are checked, and
    passes on those whose value does not ask for it (`requests_stage`). A stage without one ("") gets every request to
    the version, steps of ensembles and calls of models included, between the check and the queue. The stage with the
    smallest `order` comes first. With `host_only` tensors are copies in host memory. Every method, and the result of
    `wrap`, is called on the event loop's thread and must return at once.
    """

    parameter: str
    order: int
    host_only: bool

    def wrap(self, submit: Submit) -> Submit:
        """The Submit of this stage, called once, first: it returns the result of `submit`, or a `StageContext.hold`."""


class Suspension(Protocol):
    """One wait of an execution, which has no grant until the wait is over; an execution may have several."""

    @property
    def is_last(self) -> bool:
        """Whether this is the only open suspension of its execution."""

    def resume(self, go_on: Callable[[], None]) -> None:
        """The wait is over: call `go_on`, perhaps at once, when the execution holds a grant again. Called once."""


class ExecutionGate(Protocol):
    """Decides when the slots of one model version may execute. Every method is for the event loop's thread.

    A slot executes only while it holds a grant. Grants are given by `grant` alone, so a slot that releases its grant
    and wants another competes with all others.
    """

    def enter(self, placements: "Sequence[Placement]") -> None:
        """The placements of the slots' instances, from slot 0 up; called once, first, when all instances are ready."""

    def want(self, slot: int, granted: Callable[[int], None]) -> None:
        """The slot is free and requests wait: a `grant` calls `granted(slot)`. Does nothing if it waits or has one."""

    def started(self, slot: int) -> None:
        """The slot uses its grant for an execution; a grant that is released without this is not counted."""

    def release(self, slot: int) -> None:
        """The slot no longer holds or wants a grant: its execution is over, its instance lost, or no request waits."""

    def grant(self) -> None:
        """Call `granted` of the slots that may execute now, of all versions."""

    def suspend(self, slot: int) -> Suspension:
        """The execution at the slot gives up its grant while it waits for another model, or for a slow reader."""

    def close(self) -> None:
        """The version is closed: grant nothing more, resume suspended executions at once. Harmless when repeated."""


@runtime_checkable
class GateFactory(Protocol):
    """Makes the gates of all model versions of a server, on the event loop's thread; from the hook `naiad_gates`."""

    def admit(self, config: "ModelConfig", placements: "Sequence[Placement]") -> ExecutionGate | None:
        """The gate of a version with these instances; None when its executions never wait.

        Called before the instances are made. Raises InvalidArgumentError when they could never execute.
        """


class WorkItem(Protocol):
    """A batch for a worker; `started_ns` and `done_ns` are `time.monotonic_ns()` of its execution, 0 before."""

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

    def make_instance(self) -> "Instance":
        """Make the instance and warm it up, on the thread that will execute it. Raises NaiadError only."""

    def close_instance(self, instance: "Instance") -> None:
        """Close the instance, on the thread that executed it. Raises nothing."""

    def execute(self, instance: "Instance", item: ItemT, executed: Callable[[ItemT], None]) -> None:
        """Execute the batch and make its responses; an error fails the batch.

        `executed` is called once: before this returns, or later from any thread for an instance that answers later.
        Raises what ends the instance, such as SystemExit.
        """

    def report_death(self, error: BaseException) -> str:
        """Log what ended the instance. Returns the reason for `died`. For any thread."""

    def done(self, item: ItemT) -> None:
        """Take an executed batch back. For the event loop's thread, outside of `Worker.execute`."""

    def died(self, reason: str, lost: Sequence[ItemT]) -> None:
        """The worker has ended with its instance, and these batches are lost. For the event loop's thread."""


class Worker(Protocol[ItemT]):
    """Runs one instance: makes it, executes its batches in order and closes it, on one thread or on the event loop.

    `started` has the instance or its error; `ended` is set when the worker is over. `executing` are the batches that it
    has not handed back; each goes back to the host exactly once, by `done` or `died`. Every method is for the event
    loop's thread and never blocks.
    """

    name: str
    started: "Future[Instance]"
    ended: Future[None]

    @property
    def executing(self) -> Collection[ItemT]:
        """The batches."""

    def start(self) -> None:
        """Begin to make the instance."""

    def execute(self, item: ItemT) -> None:
        """Execute a batch after the ones before."""

    def instruct(self, instruction: "Callable[[Instance], None]") -> None:
        """Call that with the instance, after the batches before. An exception ends the instance."""

    def stop(self) -> None:
        """Close the instance after the batches before."""


class MakeWorker(Protocol):
    """Makes the worker of one instance."""

    def __call__(self, placement: "Placement", host: WorkerHost[ItemT]) -> Worker[ItemT]:
        """The worker, which `Worker.start` starts. Called on the event loop's thread."""


@runtime_checkable
class WorkerKind(Protocol):
    """One way to run instances. `choice` is its value of the model parameter `execute_on`, "" for none."""

    name: str
    choice: str

    def worker_for(self, config: "ModelConfig", traits: "BackendTraits", execute_on: str) -> MakeWorker | None:
        """The function that makes the workers of that model; None leaves the model to another kind. Called at the load.

        `execute_on` is the model's parameter, "" without it: then the kinds of plugins come first. Raises
        InvalidArgumentError for a model that cannot run so.
        """


@runtime_checkable
class HostingKind(WorkerKind, Protocol):
    """A kind of worker whose models are loaded elsewhere, such as in another process; precedes other kinds."""

    def backend_for(self, context: "ModelContext", backend: "Backend") -> "Backend | None":
        """The backend that completes and loads the model in place of `backend`; None leaves the model to other kinds.

        Called at each load, with the configuration as the user wrote it.
        """


@runtime_checkable
class LoopRunner(Protocol):
    """Runs the event loop of `naiad serve`, or of a program with `Server(runner=...)`, perhaps on changing threads."""

    def run(self, main: Coroutine[Any, Any, _T]) -> _T:
        """Run the coroutine on the event loop until it returns; blocks the calling thread. Raises what it raises."""

    def started(self) -> None:
        """The server has started."""

    def short_switch_interval(self) -> AbstractContextManager[None]:
        """Shorten the interpreter's switch interval while the block runs, once the server has started."""

    def release_loop(self) -> None:
        """Let another thread run the event loop: code on the calling thread is about to wait for it."""


@runtime_checkable
class Service(Protocol):
    """One object for the whole server, such as the tracer; from the hook `naiad_services`.

    `server.service(Kind)` returns it, where `Kind` is a runtime-checkable protocol or a class with the same `name`
    (`shared-memory`). It may also have `extensions: Sequence[str]`, the protocol extensions that a server has by it.
    """

    name: str

    async def start(self, server: ServerApi) -> None:
        """Start; called once on the event loop, before models are loaded. Raises NaiadError for unusable options."""

    async def stop(self, seconds: float) -> None:
        """Write and free everything within so many seconds, else it is cancelled; called once, after models ended."""


class LoadedVersion(Protocol):
    """A loaded version of a model, as a service sees it. For the event loop's thread."""

    @property
    def is_gated(self) -> bool:
        """Whether its executions may wait for an execution gate."""

    def in_flight(self, requests: "Sequence[Request]") -> Sequence[WatchedRequest]:
        """Those of these requests that its instances execute, or go on with; none when they are over."""

    def suspend(self, request: Occupant) -> Suspension | None:
        """The execution of that request waits for another model, and gives up its grant; None where it holds none."""


class VersionPart(Protocol):
    """An object of a service for one model version, from before its load to its end."""

    def loaded(self, version: LoadedVersion) -> None:
        """The version is loaded. Called on the event loop's thread."""

    def close(self) -> None:
        """The version is closed, or did not load. For any thread."""


@runtime_checkable
class ModelService(Service, Protocol):
    """A service with an object for each model version, `ModelContext.parts[name]`: its metrics, or its model calls."""

    def part_of(self, config: "ModelConfig") -> VersionPart:
        """The object of a version with this configuration, which is about to be loaded. For any thread."""


@runtime_checkable
class BackendSource(Service, Protocol):
    """A service with backends that no plugin lists: each is found by its name when a model is loaded that names it."""

    def find_backend(self, name: str) -> "Backend | None":
        """A backend of that name, which no plugin offers; None without one. For any thread; blocks."""

    def describe_search(self, name: str) -> str:
        """A sentence that says where a backend of that name was looked for."""
