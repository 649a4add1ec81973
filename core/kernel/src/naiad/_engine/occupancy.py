"""What one model version executes at this moment, as the outside sees it: who occupies its slots, and who waits."""

from collections.abc import Iterable, Iterator, Sequence

from naiad._engine.call import Call
from naiad._engine.containment import logged
from naiad._engine.instances import Instances
from naiad._engine.queue import ModelQueue
from naiad.extend import Suspension
from naiad.in_flight import Occupancy
from naiad.servables import Servable
from naiad.types import Request


def occupancy(name: str, instances: Instances, queue: ModelQueue) -> Sequence[Occupancy]:
    """The instances of a version, where they execute anything."""
    executing = instances.executing()
    if not executing:
        return ()
    users = [execution.calls for execution in executing]
    advice = f"give '{name}' more instances (instance_group count) than calls wait inside it at once"
    return (Occupancy(f"an instance of model '{name}'", advice, instances.slot_count, users, queue.waiting_calls),)


def occupancy_of(versions: Iterable[Servable]) -> Iterator[Occupancy]:
    """The limited resources of these versions that are in use; none of those whose code raises."""
    for version in versions:
        resources: Sequence[Occupancy] = ()
        with logged(f"reading the occupancy of model '{version.name}'", model=version.name):
            resources = version.occupancy()
        yield from resources


def in_flight(requests: Sequence[Request], instances: Instances, queue: ModelQueue) -> Sequence[Call]:
    """Those calls of these requests that execute, or whose execution has returned and goes on with them."""
    wanted = set(map(id, requests))
    for execution in instances.executing():
        if not wanted.isdisjoint(map(id, execution.batch.requests)):
            named = tuple(call for call in execution.calls if id(call.request) in wanted)
            return named or tuple(execution.calls)  # a batch codec gives the model copies
    return tuple(call for call in queue.streaming() if id(call.request) in wanted)


def suspend(call: object, instances: Instances, queue: ModelQueue) -> Suspension | None:
    """Let the execution of that call give up its grant while it waits; None where it holds none."""
    for execution in instances.executing():
        if call in execution.calls:
            return queue.suspend(execution.slot)
    return None
