"""Random graphs of models that call each other under the rate limiter: nothing is exceeded, and everything ends."""

import random

import pytest

from naiad_rate_limiter.resources import Needs, Pool

from .simulated import Job, SimulatedModel, Simulation, all_of, random_jobs, random_models

ONE = Pool("R", "global")


@pytest.mark.parametrize("seed", range(150))
def test_all_jobs_end_and_those_that_compute_never_hold_more_than_there_is(seed: int) -> None:
    chance = random.Random(seed)
    models = random_models(chance)
    jobs = random_jobs(chance, len(models), 30)
    simulation = Simulation(models)

    history = simulation.run(jobs)

    assert len(history.over) == all_of(jobs)
    assert all(not simulation.limiter.in_use(pool) for pool in simulation.limiter.capacity())
    assert all(units <= simulation.limiter.capacity()[pool] for pool, units in history.most.items())


def caller_and_called(lends: bool) -> int:
    """How many of two jobs end, where a model calls another that needs what it holds itself."""
    models = [SimulatedModel(1, Needs({ONE: 1})), SimulatedModel(1, Needs({ONE: 1}))]
    return len(Simulation(models, lends).run([Job(0, [1, 1], [Job(1, [1])])]).over)


def test_a_slot_that_kept_what_it_holds_while_it_calls_would_wait_for_ever() -> None:
    kept, lent = caller_and_called(lends=False), caller_and_called(lends=True)

    assert (kept, lent) == (0, 2)


@pytest.mark.parametrize("seed", range(40))
def test_the_simulation_finds_the_deadlocks_that_lending_avoids(seed: int) -> None:
    chance = random.Random(seed)
    models = [SimulatedModel(2, Needs({ONE: 1})) for _ in range(4)]
    jobs = [Job(0, [1, 1], [Job(1, [1, 1], [Job(2, [1])])], arrived=chance.uniform(0, 2)) for _ in range(8)]

    ended = {lends: len(Simulation(models, lends).run(_fresh(jobs)).over) for lends in (False, True)}

    assert ended[True] == all_of(jobs)
    assert ended[False] < all_of(jobs)


def _fresh(jobs: list[Job]) -> list[Job]:
    return [Job(job.model, job.pieces, _fresh(list(job.calls)), arrived=job.arrived) for job in jobs]


def test_no_model_starves_behind_models_that_always_have_work() -> None:
    greedy = [SimulatedModel(2, Needs({ONE: 1})) for _ in range(3)]
    big = SimulatedModel(1, Needs({ONE: 3}, priority=7))
    jobs = [Job(model, [0.1], arrived=0.01 * number) for model in range(3) for number in range(2000)]
    rare = [Job(3, [0.1], arrived=5.0 + number) for number in range(10)]

    history = Simulation([*greedy, big]).run([*jobs, *rare])

    first_ten = [index for index, model in enumerate(history.starts) if model == 3]
    assert len(first_ten) == 10
    assert max(first_ten) < 0.5 * len(history.starts)
