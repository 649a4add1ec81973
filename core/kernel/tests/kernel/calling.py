"""Models that call one another, played without threads: every step is chosen by the test."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from naiad._kernel.calls.waits import Queued, Served, Wait, WaitGraph


@dataclass
class Execution:
    """A place's work: the calls still to be made, several at once where a step names several models."""

    number: int
    model: str
    steps: list[tuple[str, ...]]
    awaited: list["Ticket"] = field(default_factory=list)
    refused: int = 0


@dataclass(eq=False)
class Ticket:
    """A request to a model; `by` executes it, `over` says that it is answered."""

    model: str
    steps: list[tuple[str, ...]]
    by: Execution | None = None
    over: bool = False


class World:
    """Models with places, and the requests to them. `guard` says whether a call that closes a ring is refused."""

    def __init__(self, places: dict[str, int], guard: bool = True) -> None:
        self.places = places
        self.guard = guard
        self.queues: dict[str, list[Ticket]] = {model: [] for model in places}
        self.executions: list[Execution] = []
        self.served: dict[int, Ticket] = {}
        self.refusals = 0
        self._last = 0

    def ask(self, model: str, steps: Sequence[tuple[str, ...]]) -> Ticket:
        ticket = Ticket(model, list(steps))
        self.queues[model].append(ticket)
        return ticket

    def moves(self) -> list[Callable[[], None]]:
        """Everything that may happen next."""
        found: list[Callable[[], None]] = []
        for model, queue in self.queues.items():
            busy = sum(execution.model == model for execution in self.executions)
            if queue and busy < self.places[model]:
                found.append(lambda model=model: self._dispatch(model))
        for execution in self.executions:
            if all(ticket.over for ticket in execution.awaited):
                found.append(lambda execution=execution: self._step(execution))
        return found

    def graph(self, caller: Execution | None = None, wanted: Sequence[str] = ()) -> WaitGraph:
        """Who waits for whom, as if `caller` waited for those models as well."""
        waits: dict[object, set[Wait]] = {}
        for execution in self.executions:
            own: set[Wait] = {self._wait(ticket) for ticket in execution.awaited if not ticket.over}
            if execution is caller:
                own |= {Queued(model) for model in wanted}
            if own:
                waits[execution.number] = own
        places = {}
        for model, count in self.places.items():
            held = [{each.number} & waits.keys() for each in self.executions if each.model == model]
            places[model] = held + [set()] * (count - len(held))
        return WaitGraph(waits, places)

    def _wait(self, ticket: Ticket) -> Wait:
        return Queued(ticket.model) if ticket.by is None else Served(frozenset({ticket.by.number}))

    def _dispatch(self, model: str) -> None:
        ticket = self.queues[model].pop(0)
        self._last += 1
        ticket.by = Execution(self._last, model, ticket.steps)
        self.served[self._last] = ticket
        self.executions.append(ticket.by)

    def _step(self, execution: Execution) -> None:
        execution.awaited = []
        if not execution.steps:
            self.executions.remove(execution)
            self.served[execution.number].over = True
            return
        for model in execution.steps.pop(0):
            if self.guard and execution.number in self.graph(execution, [model]).stuck():
                self.refuse(execution, model)
            else:
                execution.awaited.append(self.ask(model, self.steps_of(model)))

    def refuse(self, execution: Execution, model: str) -> None:
        """A call that could never be answered."""
        self.refusals += 1
        execution.refused += 1

    def steps_of(self, model: str) -> list[tuple[str, ...]]:
        """What a model calls when it is called; a test gives it."""
        return []
