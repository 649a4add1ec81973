"""Which models depend on which others: circles, and the order in which a change reaches the dependents."""

from collections.abc import Mapping, Sequence

Dependencies = Mapping[str, Sequence[str]]
"""The models that each one depends on, by its name."""


def circle(dependencies: Dependencies, start: str) -> tuple[str, ...]:
    """The way from a model through those that it depends on back to itself, (a, b, a); () when there is none."""
    way: list[str] = []
    dead_ends: set[str] = set()

    def leads_back(name: str) -> bool:
        way.append(name)
        for each in dependencies.get(name, ()):
            if each == start:
                way.append(each)
                return True
            if each not in dead_ends and each not in way and leads_back(each):
                return True
        dead_ends.add(way.pop())
        return False

    return tuple(way) if leads_back(start) else ()


def dependents(dependencies: Dependencies, changed: str) -> list[str]:
    """All that depends on a model, directly or not, each after what it depends on; those in a circle come last."""
    reached: set[str] = set()
    edge = [changed]
    while edge:
        name = edge.pop()
        found = [each for each, needs in dependencies.items() if name in needs and each not in reached]
        reached.update(found)
        edge += found
    ordered: list[str] = []
    left = sorted(reached)
    while left:
        ready = [each for each in left if not any(need in left for need in dependencies[each])] or left
        ordered += ready
        left = [each for each in left if each not in ready]
    return ordered
