"""The plan of a request: the steps that its requested outputs need; one per set of outputs."""

from collections.abc import Mapping
from dataclasses import dataclass

from naiad_scheduler_ensemble.graph import ONCE, REQUEST, Graph, Read


@dataclass(frozen=True, slots=True)
class Task:
    """Something to be done once in each iteration of its scope, as soon as all it reads is settled.

    It is the run of `step`, of which these outputs are `requested`, or with `step` None a response to the client.
    `writes` are the names of the step's outputs that are wanted, each with the tensor that it becomes.
    """

    step: int | None
    scope: int
    opens: int
    reads: tuple[Read, ...]
    writes: tuple[tuple[str, str], ...] = ()
    requested: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Plan:
    """The tasks of a request, the steps first; `steps` are those by the number of the step.

    `waits` are the tensors that each task waits for when all inputs are there, `counts` how many these are. `readers`
    are the tasks of a tensor's own scope that wait for it, `inner` those of scopes within; `first` are the tasks that
    wait for nothing, `within` those of each scope. In the scopes of `leaves` the client is
    answered. A `simple` plan has one scope.
    """

    tasks: tuple[Task, ...]
    steps: Mapping[int, Task]
    waits: tuple[frozenset[str], ...]
    readers: Mapping[str, tuple[int, ...]]
    inner: Mapping[str, tuple[int, ...]]
    counts: tuple[int, ...]
    first: tuple[int, ...]
    within: Mapping[int, tuple[int, ...]]
    leaves: frozenset[int]
    simple: bool


def plan_for(graph: Graph, requested: tuple[str, ...]) -> Plan:
    """The plan for these outputs of the ensemble, () for all."""
    requested_outputs = tuple(dict.fromkeys(requested)) or tuple(graph.outputs)
    needed = _needed(graph, requested_outputs)
    tensors = {read.tensor for index in needed for read in graph.nodes[index].reads}.union(requested_outputs)
    tasks = [_step(graph, index, tensors, needed) for index in sorted(needed)]
    leaves = _leaves(graph, requested_outputs)
    tasks += [_response(graph, scope, requested_outputs) for scope in sorted(leaves)]
    waits = tuple(
        frozenset(read.tensor for read in task.reads if graph.producers[read.tensor] != REQUEST) for task in tasks
    )
    readers, inner = (
        {
            tensor: tuple(
                index
                for index, task in enumerate(tasks)
                if tensor in waits[index] and (task.scope == graph.scopes[tensor]) is near
            )
            for tensor in tensors
        }
        for near in (True, False)
    )
    counts = tuple(map(len, waits))
    scopes = {task.scope for task in tasks}
    return Plan(
        tasks=tuple(tasks),
        steps={task.step: task for task in tasks if task.step is not None},
        waits=waits,
        readers=readers,
        inner=inner,
        counts=counts,
        first=tuple(i for i, task in enumerate(tasks) if not counts[i] and task.scope == ONCE),
        within={scope: tuple(i for i, task in enumerate(tasks) if task.scope == scope) for scope in scopes},
        leaves=frozenset(leaves),
        simple=scopes == {ONCE},
    )


def _needed(graph: Graph, requested_outputs: tuple[str, ...]) -> set[int]:
    """The steps that lead to these tensors."""
    needed: set[int] = set()
    open_ends = [graph.producers[tensor] for tensor in requested_outputs]
    while open_ends:
        index = open_ends.pop()
        if index != REQUEST and index not in needed:
            needed.add(index)
            open_ends += [graph.producers[read.tensor] for read in graph.nodes[index].reads]
    return needed


def _step(graph: Graph, index: int, tensors: set[str], needed: set[int]) -> Task:
    """A step of which only what is read is requested.

    What only optional inputs read must not be asked for by name: a model that leaves it out would fail.
    """
    node = graph.nodes[index]
    writes = tuple((name, tensor) for name, tensor in node.writes if tensor in tensors)
    is_whole = node.all_mapped and len(writes) == len(node.writes)
    readers = [read for other in needed for read in graph.nodes[other].reads]
    can_lack = any(
        tensor not in graph.outputs and all(read.optional for read in readers if read.tensor == tensor)
        for _, tensor in writes
    )
    requested = () if is_whole or can_lack else tuple(name for name, _ in writes)
    return Task(index, node.scope, node.opens, node.reads, writes, requested)


def _leaves(graph: Graph, requested_outputs: tuple[str, ...]) -> set[int]:
    """The scopes in which the client is answered: those of its outputs, but for those that lie around others."""
    scopes = {graph.scopes[tensor] for tensor in requested_outputs}
    outer = {each for scope in scopes for each in graph.around(scope)[1:]}
    return scopes - outer


def _response(graph: Graph, scope: int, requested_outputs: tuple[str, ...]) -> Task:
    """The response with all outputs that are known in a scope; those that no step produced may lack."""
    visible = graph.around(scope)
    reads = tuple(
        Read(tensor, tensor, graph.outputs[tensor], optional=True)
        for tensor in requested_outputs
        if graph.scopes[tensor] in visible
    )
    return Task(None, scope, scope, reads)
