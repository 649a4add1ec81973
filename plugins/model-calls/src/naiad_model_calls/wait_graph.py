"""Wait-for graph: finds the nodes that wait for ever, and the cycle that blocks one of them. Pure."""

from collections.abc import Hashable, Iterable, Mapping, Sequence


class WaitGraph:
    """Who waits for whom at one moment.

    `waits` has the waits of each node, all of which have to end before the node goes on. A wait ends when one of its
    alternatives goes on: the users of the slots of a resource, or the one node that is waited for. A node without
    waits, or one that is not in the graph, goes on.
    """

    def __init__(self, waits: Mapping[Hashable, Iterable[Sequence[Hashable]]]) -> None:
        self._waits = {node: tuple(own) for node, own in waits.items()}

    def stuck(self) -> set[Hashable]:
        """The nodes that can never go on: the largest set each of whose nodes waits for that set alone."""
        stuck = {node for node, waits in self._waits.items() if waits}
        while live := {node for node in stuck if not self._hopeless(node, stuck)}:
            stuck -= live
        return stuck

    def ring(self) -> Sequence[Hashable]:
        """Stuck nodes of which each waits for the next one, and the last for the first; () where none is stuck."""
        stuck = self.stuck()
        path: dict[Hashable, None] = {}
        node = next((each for each in self._waits if each in stuck), None)
        while node is not None and node not in path:
            path[node] = None
            node = self._hopeless(node, stuck)[0][0]
        nodes = list(path)
        return nodes[nodes.index(node) :] if node is not None else ()

    def _hopeless(self, node: Hashable, stuck: set[Hashable]) -> list[Sequence[Hashable]]:
        """The waits of a node that do not end while these nodes do not go on."""
        return [wait for wait in self._waits[node] if stuck.issuperset(wait)]
