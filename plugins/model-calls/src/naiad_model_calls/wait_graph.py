"""Wait-for graph: finds the nodes that wait for ever, and the cycle that blocks one of them. Pure."""

from collections import Counter, defaultdict
from collections.abc import Hashable, Iterable, Mapping, Sequence


class WaitGraph:
    """Who waits for whom at one moment.

    `waits` has the waits of each node, all of which have to end before the node goes on. A wait ends when one of its
    alternatives goes on: the users of the slots of a resource, or the one node that is waited for. A node without
    waits, or one that is not in the graph, goes on.

    `stuck` are the nodes that can never go on: the largest set each of whose nodes waits for that set alone.
    """

    def __init__(self, waits: Mapping[Hashable, Iterable[Sequence[Hashable]]]) -> None:
        self._waits = {node: tuple(own) for node, own in waits.items()}
        self.stuck = self._find_stuck()

    def ring(self) -> Sequence[Hashable]:
        """Stuck nodes of which each waits for the next one, and the last for the first; () where none is stuck."""
        path: dict[Hashable, None] = {}
        node = next((each for each in self._waits if each in self.stuck), None)
        while node is not None and node not in path:
            path[node] = None
            node = next(wait for wait in self._waits[node] if self.stuck.issuperset(wait))[0]
        nodes = list(path)
        return nodes[nodes.index(node) :] if node is not None else ()

    def _find_stuck(self) -> set[Hashable]:
        """The nodes that can never go on. Linear time: a node that goes on ends each wait that names it once."""
        waiting: dict[int, list[Hashable]] = defaultdict(list)
        ended_by: dict[Hashable, list[int]] = defaultdict(list)
        for node, own in self._waits.items():
            for wait in own:
                if id(wait) not in waiting:  # all that wait for a resource share the sequence of its users
                    for alternative in wait:
                        ended_by[alternative].append(id(wait))
                waiting[id(wait)].append(node)
        open_waits = Counter(node for nodes in waiting.values() for node in nodes)
        going_on = [node for node in ended_by if node not in open_waits]
        while going_on:
            for number in ended_by.pop(going_on.pop(), ()):
                for node in waiting.pop(number, ()):
                    open_waits[node] -= 1
                    if not open_waits[node]:
                        going_on.append(node)
        return {node for node, count in open_waits.items() if count}
