"""Who waits for whom: no call that could be answered is refused, and none that never will be is let wait."""

import copy
from itertools import combinations
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from naiad._kernel.calls.waits import Queued, Served, Wait, WaitGraph

from .calling import Execution, World

CALLERS = st.integers(0, 5)
MODELS = st.sampled_from("abc")
WAITS = st.one_of(MODELS.map(Queued), st.frozensets(CALLERS, max_size=2).map(Served))
GRAPHS = st.tuples(
    st.dictionaries(CALLERS, st.sets(WAITS, max_size=3)),
    st.dictionaries(MODELS, st.lists(st.sets(CALLERS, max_size=2), max_size=3)),
)


def test_nobody_waits_for_ever_in_an_empty_world() -> None:
    assert WaitGraph({}, {}).stuck() == frozenset()


def test_a_model_that_calls_itself_on_its_only_place_waits_for_ever() -> None:
    graph = WaitGraph({1: [Queued("a")]}, {"a": [{1}]})

    assert graph.stuck() == {1}
    assert graph.ring(1) == (1,)


def test_a_model_that_calls_itself_goes_on_with_another_place_that_is_free() -> None:
    assert WaitGraph({1: [Queued("a")]}, {"a": [{1}, set()]}).stuck() == frozenset()


def test_two_models_that_wait_for_each_other_are_a_ring() -> None:
    graph = WaitGraph({1: [Queued("b")], 2: [Queued("a")]}, {"a": [{1}], "b": [{2}]})

    assert (graph.stuck(), graph.ring(1), graph.ring(2)) == ({1, 2}, (1, 2), (2, 1))


def test_a_call_that_is_executed_by_a_caller_waits_with_it() -> None:
    graph = WaitGraph({1: [Served(frozenset({2}))], 2: [Queued("a")]}, {"a": [{1}]})

    assert graph.ring(2) == (2, 1)


def test_one_of_several_calls_that_is_never_answered_is_enough() -> None:
    graph = WaitGraph({1: [Queued("free"), Queued("a")]}, {"a": [{1}]})

    assert graph.stuck() == {1}


def test_who_waits_for_a_model_outside_the_picture_goes_on() -> None:
    assert WaitGraph({1: [Queued("elsewhere")]}, {}).ring(1) == ()


def stuck_by_trying(waits: dict[int, set[Wait]], places: dict[str, list[set[int]]]) -> set[int]:
    """All callers of every set each of whose members has a wait that nobody outside the set can answer."""

    def is_hopeless(wait: Wait, group: set[int]) -> bool:
        if isinstance(wait, Served):
            return bool(wait.by & group)
        return wait.model in places and all(place & group for place in places[wait.model])

    found: set[int] = set()
    for size in range(1, len(waits) + 1):
        for group in map(set, combinations(waits, size)):
            if all(any(is_hopeless(wait, group) for wait in waits[caller]) for caller in group):
                found |= group
    return found


@given(GRAPHS)
@settings(max_examples=300, deadline=None)
def test_the_stuck_are_those_that_trying_every_group_finds(
    graph: tuple[dict[int, set[Wait]], dict[str, list[set[int]]]],
) -> None:
    waits, places = graph

    assert WaitGraph(waits, places).stuck() == stuck_by_trying(waits, places)


@given(GRAPHS)
@settings(max_examples=200, deadline=None)
def test_a_ring_leads_from_its_start_through_stuck_callers_alone(
    graph: tuple[dict[int, set[Wait]], dict[str, list[set[int]]]],
) -> None:
    found = WaitGraph(*graph)
    stuck = found.stuck()

    for caller in graph[0]:
        ring = found.ring(caller)
        assert ring[:1] == ((caller,) if caller in stuck else ())
        assert set(ring) <= stuck
        assert len(set(ring)) == len(ring)


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
