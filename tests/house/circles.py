"""Circles of a directed graph: its strongly connected components of two nodes and more (Tarjan's algorithm)."""

from collections.abc import Iterator, Mapping


def circles(edges: Mapping[str, set[str]]) -> list[list[str]]:
    """The circles, the largest first, each sorted by name; nodes that are in no circle are left out."""
    components = [sorted(component) for component in _components(edges) if len(component) > 1]
    return sorted(components, key=lambda component: (-len(component), component))


def _components(edges: Mapping[str, set[str]]) -> Iterator[list[str]]:
    index: dict[str, int] = {}
    lowest: dict[str, int] = {}
    stack: list[str] = []
    for root in sorted(edges):
        if root in index:
            continue
        index[root] = lowest[root] = len(index)
        stack.append(root)
        path = [(root, iter(sorted(edges[root])))]
        while path:
            node, following = path[-1]
            for neighbour in following:
                if neighbour not in edges:
                    continue
                if neighbour not in index:
                    index[neighbour] = lowest[neighbour] = len(index)
                    stack.append(neighbour)
                    path.append((neighbour, iter(sorted(edges[neighbour]))))
                    break
                if neighbour in stack:
                    lowest[node] = min(lowest[node], index[neighbour])
            else:
                path.pop()
                if path:
                    lowest[path[-1][0]] = min(lowest[path[-1][0]], lowest[node])
                if lowest[node] == index[node]:
                    start = stack.index(node)
                    component = stack[start:]
                    del stack[start:]
                    yield component
