"""What a deadlock check of model calls costs: CPU time for so many busy versions and waiting calls."""

import argparse
from collections.abc import Callable, Sequence
from functools import partial
from itertools import pairwise
from time import process_time

from naiad.extend import Submit
from naiad.in_flight import Occupancy, Occupant
from naiad.server import Deliver
from naiad.types import Request

from naiad_model_calls.call_scope import CallingModel, CallScope
from naiad_model_calls.deadlocks import Snapshot
from naiad_model_calls.model_call import ModelCall


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--versions", type=int, default=1000, help="versions of one instance each, which all execute")
    parser.add_argument("--calls", type=int, default=200, help="executions whose call waits for the next version")
    parser.add_argument("--runs", type=int, default=200, help="the best of these counts")
    arguments = parser.parse_args()
    versions, calls = waiting(arguments.versions, arguments.calls)
    best = min(seconds(lambda: check(versions, calls)) for _ in range(arguments.runs))
    print(f"{arguments.versions} versions, {arguments.calls} calls: {1000 * best:.2f} ms of CPU time a check")


def check(versions: "Sequence[Version]", calls: Sequence[ModelCall]) -> None:
    """One check; raises AssertionError if it finds a deadlock, as there is none."""
    snapshot = Snapshot([version.occupancy() for version in versions], calls)
    assert not snapshot.lift()
    assert not snapshot.refuse()


def seconds(work: Callable[[], None]) -> float:
    """The CPU seconds that it takes."""
    began = process_time()
    work()
    return process_time() - began


class InFlight:
    """A request that executes, or waits for the instance of a version."""

    is_paused = False
    waits_for: Sequence[Occupant] = ()

    def __init__(self, request: Request) -> None:
        self.request = request

    def unblock(self) -> None:
        """Nothing: it is not paused."""

    def watch(self, listener: Callable[[], None]) -> None:
        """Nothing: its caller stays."""

    def unwatch(self, listener: Callable[[], None]) -> None:
        """Nothing: its caller stays."""

    def cancel(self) -> None:
        """Nothing: its caller stays."""

    def pause(self) -> None:
        """Nothing: it has one response."""

    def resume(self) -> None:
        """Nothing: it has one response."""


class Version:
    """A version with one instance, which executes a request; `waiting` are those that wait for it."""

    is_gated = False

    def __init__(self, name: str) -> None:
        self.name = name
        self.executing = InFlight(Request(name, inputs={}))
        self.waiting: list[InFlight] = []

    def in_flight(self, requests: Sequence[Request]) -> Sequence[InFlight]:
        """The request that it executes."""
        return (self.executing,)

    def suspend(self, request: Occupant) -> None:
        """Nothing: no gate limits what executes."""

    def occupancy(self) -> Occupancy:
        """The instance."""
        return Occupancy(f"an instance of model '{self.name}'", "", 1, [(self.executing,)], lambda: self.waiting)


def waiting(versions: int, calls: int) -> tuple[list[Version], list[ModelCall]]:
    """The versions and calls of a server: each call is from one version to the next, and the last one's goes on."""
    busy = [Version(f"m{number}") for number in range(versions)]
    begun = []
    for caller, called in pairwise(busy[: calls + 1]):
        call = ModelCall(called.name, False, lambda _: None, lambda _: None)
        scope = CallScope(CallingModel(caller.name), caller, (caller.executing,))
        call.begin(Request(called.name, inputs={}), partial(get_scope, scope), submit_to(called))
        begun.append(call)
    return busy, begun


def get_scope(scope: CallScope) -> CallScope:
    """The scope of a call."""
    return scope


def submit_to(version: Version) -> Submit:
    """Puts a request into the queue of that version."""

    def submit(request: Request, deliver: Deliver, streams: bool = False) -> InFlight:
        queued = InFlight(request)
        version.waiting.append(queued)
        return queued

    return submit


if __name__ == "__main__":
    main()
