"""Models that call one another, played without threads: every step is chosen by the test."""

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field

from naiad_model_calls.wait_graph import WaitGraph


@dataclass
class Execution:
    """The work of a slot: the calls still to be made, several at once where a step names several models."""

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
    """Models with slots, and the requests to them. `guard` says whether a call that closes a ring is refused."""

    def __init__(self, slots: dict[str, int], guard: bool = True) -> None:
        self.slots = slots
        self.guard = guard
        self.queues: dict[str, list[Ticket]] = {model: [] for model in slots}
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
        results: list[Callable[[], None]] = []
        for model, queue in self.queues.items():
            busy = sum(execution.model == model for execution in self.executions)
            if queue and busy < self.slots[model]:
                results.append(lambda model=model: self._dispatch(model))
        for execution in self.executions:
            if all(ticket.over for ticket in execution.awaited):
                results.append(lambda execution=execution: self._step(execution))
        return results

    def graph(self, caller: Execution | None = None, more: Sequence[str] = ()) -> WaitGraph:
        """Who waits for whom, as if `caller` waited for those models as well."""
        waits: dict[Hashable, list[Sequence[int]]] = {}
        for execution in self.executions:
            own = [self._alternatives(ticket) for ticket in execution.awaited if not ticket.over]
            if execution is caller:
                own += [self._users(model) for model in more]
            waits[execution.number] = [each for each in own if each]
        return WaitGraph(waits)

    def _alternatives(self, ticket: "Ticket") -> Sequence[int]:
        return self._users(ticket.model) if ticket.by is None else (ticket.by.number,)

    def _users(self, model: str) -> Sequence[int]:
        """The executions of which one has to end before the model takes a request; none while it has a free slot."""
        users = [each.number for each in self.executions if each.model == model]
        return users if len(users) == self.slots[model] else ()

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
            if self.guard and execution.number in self.graph(execution, [model]).stuck:
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
