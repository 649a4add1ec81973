"""The run of one request: which tensors its steps have produced, and which steps and responses are ready."""

from collections import deque
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from naiad_scheduler_ensemble.graph import ONCE, Read
from naiad_scheduler_ensemble.moves import EnsembleResponse, Moves, SequenceFlags, StepStart
from naiad_scheduler_ensemble.plan import Plan, Task

_DEADLOCK = "unexpected deadlock, at least one output is not set while no more ensemble steps can be made"
_NO_SHAPES: Mapping[str, tuple[int, ...]] = {}


class Iteration:
    """What is known since one response of a decoupled step; the first iteration is the request itself.

    `values` are the settled tensors, None for one that was left out; `open_counts` has for each task the number of
    tensors it still waits for, `todo` how many tasks have not been done. `response` is what waits for earlier ones.
    `number` counts the iterations of a run.
    """

    __slots__ = ("flags", "number", "open_counts", "parent", "response", "scope", "todo", "values")

    def __init__(
        self, scope: int, parent: "Iteration | None", open_counts: list[int], todo: int, number: int = 0
    ) -> None:
        self.number = number
        self.scope = scope
        self.parent = parent
        self.values: dict[str, Any] = {}
        self.flags: dict[str, SequenceFlags] | None = None
        self.open_counts = open_counts
        self.todo = todo
        self.response: EnsembleResponse | None = None


class Run:
    """A run of one plan. Each step is started at most once in an iteration, and the last response is final.

    `_open` are the iterations in which something can still happen; `_inner` has, by their parents, those that are open
    or have open ones within them.
    """

    __slots__ = ("_first", "_inner", "_open", "_opened_count", "_order", "_plan", "_running", "_streams")

    def __init__(self, plan: Plan, inputs: Mapping[str, Any], decoupled: bool) -> None:
        self._plan = plan
        self._streams = decoupled
        self._running = 0
        self._first = Iteration(ONCE, None, list(plan.counts), len(plan.within.get(ONCE, ())))
        self._first.values.update(inputs)
        self._open: set[Iteration] = set() if plan.simple else {self._first}
        self._inner: dict[Iteration, set[Iteration]] = {}
        self._opened_count = 0
        self._order: deque[Iteration] = deque((self._first,) if ONCE in plan.leaves else ())

    def begin(self) -> Moves:
        """Start every step that the inputs are enough for."""
        moves = Moves([], [])
        self._do(self._first, self._plan.first, moves)
        return self._released(moves)

    def answered(
        self,
        start: StepStart,
        outputs: Mapping[str, Any],
        final: bool,
        flags: SequenceFlags | None = None,
        explicit: bool = False,
    ) -> Moves:
        """Settle what the step writes, and start what that makes possible.

        Each response of a decoupled step begins an iteration of all that it leads to, except for a final one without
        outputs that is not `explicit`: that one only ends the step.
        """
        iteration: Iteration = start.iteration
        task = self._plan.steps[start.step]
        if final:
            self._running -= 1
        moves = Moves([], [])
        if task.opens != start.step:
            self._settle(iteration, task, outputs, _merged(start.flags, flags), moves)
        elif outputs or explicit or not final:
            opened = self._opened(task, iteration)
            self._settle(opened, task, outputs, _merged(start.flags, flags), moves)
            self._close(opened)
        self._close(iteration)
        return self._released(moves)

    def _settle(
        self,
        iteration: Iteration,
        task: Task,
        outputs: Mapping[str, Any],
        flags: SequenceFlags | None,
        moves: Moves,
    ) -> None:
        plan, open_counts = self._plan, iteration.open_counts
        ready: list[int] = []
        for name, tensor in task.writes:
            iteration.values[tensor] = outputs.get(name)
            if flags is not None:
                iteration.flags = iteration.flags or {}
                iteration.flags[tensor] = flags
            for reader in plan.readers[tensor]:
                open_counts[reader] -= 1
                if not open_counts[reader]:
                    ready.append(reader)
        self._do(iteration, ready, moves)
        if self._inner and any(plan.inner[tensor] for _, tensor in task.writes):
            self._settle_within(iteration, task, moves)

    def _settle_within(self, outer: Iteration, task: Task, moves: Moves) -> None:
        """Count down, in the open iterations within `outer`, the tensors that `task` has settled; start what waited."""
        for inner in self._open_within(outer):
            ready = []
            for _, tensor in task.writes:
                for reader in self._plan.inner[tensor]:
                    if self._plan.tasks[reader].scope == inner.scope:
                        inner.open_counts[reader] -= 1
                        if not inner.open_counts[reader]:
                            ready.append(reader)
            self._do(inner, ready, moves)
            self._close(inner)

    def _opened(self, task: Task, parent: Iteration) -> Iteration:
        """A new iteration of what a decoupled step leads to; what is settled around it is not waited for."""
        plan = self._plan
        tasks = plan.within.get(task.opens, ())
        open_counts = [0] * len(plan.counts)
        for each in tasks:
            open_counts[each] = sum(not _is_settled(parent, tensor) for tensor in plan.waits[each])
        self._opened_count += 1
        opened = Iteration(task.opens, parent, open_counts, len(tasks), self._opened_count)
        self._open.add(opened)
        self._link(opened)
        if task.opens in plan.leaves:
            self._order.append(opened)
        return opened

    def _close(self, iteration: Iteration) -> None:
        """Forget an iteration in which nothing will happen any more."""
        if iteration.scope != ONCE and not iteration.todo and iteration in self._open:
            self._open.remove(iteration)
            self._unlink(iteration)

    def _link(self, iteration: Iteration) -> None:
        """Let the iterations around it know it. Those around may have been closed, and unlinked, before."""
        while iteration.parent is not None:
            siblings = self._inner.setdefault(iteration.parent, set())
            if iteration in siblings:
                return
            siblings.add(iteration)
            iteration = iteration.parent

    def _unlink(self, iteration: Iteration) -> None:
        """Forget it, and those around it that are closed and have no others within them."""
        while iteration.parent is not None and iteration not in self._open and iteration not in self._inner:
            siblings = self._inner[iteration.parent]
            siblings.remove(iteration)
            if not siblings:
                del self._inner[iteration.parent]
            iteration = iteration.parent

    def _open_within(self, outer: Iteration) -> list[Iteration]:
        """The open iterations within another, in the order in which they were opened."""
        within: list[Iteration] = []
        around = [outer]
        while around:
            inner = self._inner.get(around.pop(), ())
            around.extend(inner)
            within.extend(each for each in inner if each in self._open)
        return sorted(within, key=lambda each: each.number)

    def _do(self, iteration: Iteration, ready: Iterable[int], moves: Moves) -> None:
        for index in ready:
            task = self._plan.tasks[index]
            iteration.todo -= 1
            inputs, shapes, flags, lacking = _gathered(task, iteration)
            if lacking:
                moves.failure = f"{_DEADLOCK}: {lacking}"
                return
            if task.step is None:
                iteration.response = EnsembleResponse(inputs, shapes, False, flags)
                continue
            self._running += 1
            moves.starts.append(  # type: ignore[attr-defined]
                StepStart(task.step, inputs, task.requested, shapes, flags, iteration)
            )

    def _released(self, moves: Moves) -> Moves:
        """With the responses that no earlier one holds back; the last of all is final."""
        responses: list[EnsembleResponse] = moves.responses  # type: ignore[assignment]
        order = self._order
        while order and order[0].response is not None:
            responses.append(order.popleft().response)  # type: ignore[arg-type]
        if self._running or moves.failure:
            return moves
        if responses:
            responses[-1].final = True
        elif self._streams:
            responses.append(EnsembleResponse({}, explicit=False))
        return moves


def _gathered(
    task: Task, iteration: Iteration
) -> tuple[dict[str, Any], Mapping[str, tuple[int, ...]], SequenceFlags | None, str]:
    """What a task reads, by its own names; and in words what is not there that it cannot do without."""
    inputs: dict[str, Any] = {}
    shapes: dict[str, tuple[int, ...]] | None = None
    flags: SequenceFlags | None = None
    for read in task.reads:
        source: Iteration | None = iteration
        while source is not None and read.tensor not in source.values:
            source = source.parent
        value = source.values[read.tensor] if source is not None else None
        if value is None:
            if not read.optional:
                return inputs, _NO_SHAPES, flags, _lack(task, read)
            continue
        inputs[read.name] = value
        if read.bridge is not None:
            shape = read.bridge(value.shape)
            if shape != value.shape:
                shapes = shapes or {}
                shapes[read.name] = shape
        if source is not None and source.flags is not None:
            flags = _merged(flags, source.flags.get(read.tensor))
    return inputs, shapes or _NO_SHAPES, flags, ""


def _lack(task: Task, read: Read) -> str:
    return f"step {task.step} needs '{read.tensor}' for its input '{read.name}', and it was not produced"


def _merged(earlier: SequenceFlags | None, later: SequenceFlags | None) -> SequenceFlags | None:
    """What the later one leaves open stays as the earlier one said."""
    if later is None or earlier is None:
        return later or earlier
    said = {name: value for name in ("correlation_id", "start", "end") if (value := getattr(later, name)) is not None}
    return replace(earlier, **said)


def _is_settled(iteration: Iteration | None, tensor: str) -> bool:
    while iteration is not None:
        if tensor in iteration.values:
            return True
        iteration = iteration.parent
    return False
