"""Who waits for whom: no call that could be answered is refused, and none that never will be is let wait."""

import copy
from dataclasses import dataclass
from itertools import combinations, pairwise
from random import Random
from typing import ClassVar

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from naiad_model_calls.wait_graph import WaitGraph

from .world import Execution, World

NODES = st.integers(0, 5)
GRAPHS = st.dictionaries(NODES, st.lists(st.lists(NODES, min_size=1, max_size=3), max_size=3))


def test_nodes_that_wait_for_nothing_go_on() -> None:
    assert WaitGraph({}).stuck == set()
    assert WaitGraph({1: []}).ring() == ()


def test_a_model_that_calls_itself_on_its_only_slot_waits_for_ever() -> None:
    graph = WaitGraph({1: [[1]]})

    assert graph.stuck == {1}
    assert graph.ring() == [1]


def test_a_model_that_calls_itself_goes_on_with_a_second_slot_that_waits_for_nothing() -> None:
    assert WaitGraph({1: [[1, 2]], 2: []}).stuck == set()


def test_two_that_wait_for_each_other_are_a_ring() -> None:
    graph = WaitGraph({1: [[2]], 2: [[1]]})

    assert (graph.stuck, graph.ring()) == ({1, 2}, [1, 2])


def test_one_that_waits_for_a_ring_is_stuck_and_not_in_the_ring() -> None:
    graph = WaitGraph({0: [[1]], 1: [[2]], 2: [[1]]})

    assert (graph.stuck, graph.ring()) == ({0, 1, 2}, [1, 2])


def test_one_of_several_waits_that_never_ends_is_enough() -> None:
    assert WaitGraph({1: [[3], [1]], 3: []}).stuck == {1}


def test_a_node_outside_of_the_graph_goes_on() -> None:
    assert WaitGraph({1: [[7]]}).ring() == ()


def stuck_by_trying(waits: dict[int, list[list[int]]]) -> set[int]:
    """All nodes of every set each of whose nodes has a wait that only nodes of the set could end."""
    results: set[int] = set()
    for size in range(1, len(waits) + 1):
        for group in map(set, combinations(waits, size)):
            if all(any(group.issuperset(wait) for wait in waits[node]) for node in group):
                results |= group
    return results


@given(GRAPHS)
@settings(max_examples=300)
def test_the_stuck_are_those_that_trying_every_group_finds(waits: dict[int, list[list[int]]]) -> None:
    assert WaitGraph(waits).stuck == stuck_by_trying(waits)


@given(GRAPHS)
@settings(max_examples=200)
def test_in_a_ring_each_waits_in_vain_for_the_next(waits: dict[int, list[list[int]]]) -> None:
    graph = WaitGraph(waits)
    stuck, ring = graph.stuck, list(graph.ring())

    assert bool(ring) == bool(stuck)
    for node, following in zip(ring, ring[1:] + ring[:1], strict=True):
        assert any(following in wait and stuck.issuperset(wait) for wait in waits[node])


@dataclass(frozen=True)
class CountedNode:
    """A node of a graph, which notes each look-up of a node."""

    number: int
    lookups: ClassVar[list[int]] = []

    def __hash__(self) -> int:
        self.lookups.append(self.number)
        return self.number


@pytest.mark.parametrize("shared", [False, True], ids=["a chain of calls", "all wait for the slots of one resource"])
def test_the_work_is_linear_in_the_number_of_nodes(shared: bool) -> None:
    def lookups(count: int) -> int:
        nodes = [CountedNode(number) for number in range(count)]
        waits = [[nodes]] * count if shared else [[[following]] for _, following in pairwise(nodes)]
        CountedNode.lookups.clear()
        assert WaitGraph(dict(zip(nodes, waits, strict=False))).stuck == (set(nodes) if shared else set())
        return len(CountedNode.lookups)

    assert lookups(400) < 2.5 * lookups(200)


class RandomWorld(World):
    """Models that call others by chance, a few levels deep; each refusal is proved by letting the call wait."""

    def __init__(self, random: Random, guard: bool = True) -> None:
        super().__init__({model: random.choice([1, 1, 2, 3]) for model in "abcd"}, guard)
        self.random = random
        self.calls_left = 60
        self.proving = True

    def steps_of(self, model: str) -> list[tuple[str, ...]]:
        steps = [tuple(self.random.choices("abcd", k=self.random.choice([1, 1, 2]))) for _ in range(2)]
        self.calls_left -= sum(map(len, steps))
        return steps if self.calls_left > 0 else []

    def refuse(self, execution: Execution, model: str) -> None:
        super().refuse(execution, model)
        if self.proving:
            self._prove(execution, model)

    def _prove(self, execution: Execution, model: str) -> None:
        other = copy.deepcopy(self)
        other.proving = False
        ours = next(each for each in other.executions if each.number == execution.number)
        ours.awaited.append(other.ask(model, []))
        play(other)
        assert ours in other.executions, "a call was refused that would have been answered"


def play(world: RandomWorld) -> None:
    while moves := world.moves():
        world.random.choice(moves)()


@pytest.mark.parametrize("seed", range(40))
def test_whatever_models_call_each_other_all_requests_are_answered_in_the_end(seed: int) -> None:
    world = RandomWorld(Random(seed))
    tickets = [world.ask(model, world.steps_of(model)) for model in "abcdabcd"]

    play(world)

    assert all(ticket.over for ticket in tickets)
    assert (world.executions, any(world.queues.values())) == ([], False)


def test_the_same_worlds_without_the_guard_stand_still() -> None:
    stood_still = 0
    for seed in range(40):
        world = RandomWorld(Random(seed), guard=False)
        for model in "abcdabcd":
            world.ask(model, world.steps_of(model))
        play(world)
        stood_still += bool(world.executions)

    assert stood_still > 20
