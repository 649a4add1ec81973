"""The rate limiter in a running server: which executions wait for which, and what is refused."""

import asyncio
from typing import Any

import pytest

from naiad import Server
from naiad.backend import Batch
from naiad.errors import InvalidArgumentError
from naiad_kit.calls import ModelCalls
from naiad_kit.metrics import MetricsApi
from naiad_testing.loops import until

from .models import Held, Models, begin, double, group, units


def is_unloaded(server: Server, name: str) -> bool:
    return ("UNAVAILABLE", "unloaded") in [(each.state, each.reason) for each in server.index() if each.name == name]


ONE = units(1)
EVERYWHERE = 'name: "R" global: true count: 1'


async def test_without_the_option_nothing_is_limited(models: Models) -> None:
    held = Held(models, a=group(ONE), b=group(ONE))

    async with models.running() as server:
        answers = begin(server, "a", "b")
        assert await held.executing() == ["a", "b"]
        await held.end_all()
        await asyncio.gather(*answers)


async def test_models_that_share_a_resource_execute_one_after_the_other(models: Models) -> None:
    held = Held(models, a=group(ONE), b=group(ONE))

    async with models.running(rate_limit="execution_count") as server:
        answers = begin(server, "a", "b")
        assert await held.executing() == ["a"]
        held.end("a")
        assert await held.executing() == ["b"]
        await held.end_all()
        await asyncio.gather(*answers)


async def test_an_explicit_limit_lets_as_many_execute_as_it_has_units_for(models: Models) -> None:
    held = Held(models, a=group(ONE, count=3), b=group(units(2)))

    async with models.running(rate_limit="execution_count", rate_limit_resource=("R:4",)) as server:
        answers = begin(server, "a", "a", "a", "b")
        assert await held.executing() == ["a", "a", "a"]
        held.end("a")
        assert await held.executing() == ["a", "a", "b"]
        await held.end_all()
        await asyncio.gather(*answers)


async def test_models_without_resources_never_wait(models: Models) -> None:
    held = Held(models, a=group(ONE), free="")

    async with models.running(rate_limit="execution_count") as server:
        answers = begin(server, "a", "free")
        assert await held.executing() == ["a", "free"]
        await held.end_all()
        await asyncio.gather(*answers)


async def test_a_global_resource_is_one_for_all_devices_and_others_are_not(models: Models) -> None:
    everywhere = 'name: "G" global: true count: 1'
    held = Held(models, a=group(everywhere), b=group(everywhere), c=group(ONE))

    async with models.running(rate_limit="execution_count") as server:
        answers = begin(server, "a", "b", "c")
        assert await held.executing() == ["a", "c"]
        await held.end_all()
        await asyncio.gather(*answers)


async def test_the_larger_priority_has_its_turn_less_often(models: Models) -> None:
    held = Held(models, often=group(ONE, priority=1), seldom=group(ONE, priority=3))

    async with models.running(rate_limit="execution_count") as server:
        answers = begin(server, *["often"] * 12, *["seldom"] * 12)
        for _ in range(12):
            (executing,) = await held.executing()
            held.end(executing)
        await held.executing()
        order = held.begun[:12]
        await held.end_all()
        await asyncio.gather(*answers)

    assert (order.count("often"), order.count("seldom")) == (9, 3)


async def test_a_request_that_is_taken_back_while_it_waits_keeps_nothing_from_the_others(models: Models) -> None:
    held = Held(models, a=group(ONE), b=group(units(2)), c=group(ONE))

    async with models.running(rate_limit="execution_count") as server:
        (first,) = begin(server, "a")
        await held.executing()
        (waits,) = begin(server, "b")
        await held.executing()
        (behind,) = begin(server, "c")
        assert await held.executing() == ["a"]
        waits.cancel()
        assert await held.executing() == ["a", "c"]
        await held.end_all()
        await asyncio.gather(first, behind)


async def test_a_worker_that_dies_gives_back_what_it_held(models: Models) -> None:
    def die(batch: Batch, models: ModelCalls) -> Any:
        raise SystemExit("gone")

    models.add("mortal", die, group(ONE))
    held = Held(models, other=group(ONE))

    async with models.running(rate_limit="execution_count") as server:
        lost, answer = begin(server, "mortal", "other")
        await asyncio.gather(lost, return_exceptions=True)
        await until(lambda: held.begun)
        assert await held.executing() == ["other"]
        await held.end_all()
        await answer


@pytest.mark.parametrize("execute_on", ["thread", "event_loop"])
async def test_many_requests_to_many_models_are_all_answered(models: Models, execute_on: str) -> None:
    home = f'parameters {{ key: "execute_on" value {{ string_value: "{execute_on}" }} }}'
    for index in range(5):
        resources = [f'name: "R" count: {index % 3 + 1}', f'name: "S{index % 2}" count: 1']
        models.add(f"m{index}", double, f"{home} {group(*resources, count=2, priority=index)}")

    async with models.running(rate_limit="execution_count") as server:
        answers = await asyncio.gather(*begin(server, *[f"m{index % 5}" for index in range(300)]))

    assert len(answers) == 300


# What is refused


async def test_a_limit_that_is_too_small_fails_the_load_and_says_by_how_much(models: Models) -> None:
    models.add("m", double, group(units(5)))

    async with models.running(rate_limit="execution_count", rate_limit_resource=("R:4",)) as server:
        (entry,) = server.index()

    assert entry.state == "UNAVAILABLE"
    assert '"R" is limited to 4' in entry.reason
    assert "count is 5 " in entry.reason
    assert models.placements == []


async def test_a_resource_of_two_scopes_fails_the_load_of_the_second_model(models: Models) -> None:
    models.add("a", double, group(ONE))
    models.add("b", double, group(EVERYWHERE))
    options = {"model_control_mode": "explicit", "load_model": ("a",), "rate_limit": "execution_count"}

    async with models.running(**options) as server:
        with pytest.raises(InvalidArgumentError, match='Resource "R" is present as both'):
            await server.load("b")
        await server.unload("a")
        await until(lambda: is_unloaded(server, "a"))
        await server.load("b")


async def test_a_limit_that_cannot_be_read_ends_the_start(models: Models) -> None:
    with pytest.raises(InvalidArgumentError, match="--rate-limit-resource 'R' must be NAME:COUNT"):
        async with models.running(rate_limit="execution_count", rate_limit_resource=("R",)):
            pass


async def test_limits_without_the_limiter_are_pointed_out(models: Models, caplog: pytest.LogCaptureFixture) -> None:
    async with models.running(rate_limit_resource=("R:1",)):
        pass

    assert "--rate-limit-resource changes nothing without --rate-limit=execution_count" in caplog.text


# Without the plugin


async def test_without_the_plugin_resources_limit_nothing(models: Models) -> None:
    held = Held(models, a=group(ONE), b=group(ONE))

    async with models.running(plugins=()) as server:
        answers = begin(server, "a", "b")
        assert await held.executing() == ["a", "b"]
        await held.end_all()
        await asyncio.gather(*answers)


async def test_without_the_plugin_its_options_are_refused(models: Models) -> None:
    with pytest.raises(InvalidArgumentError, match="unknown option 'rate-limit'"):
        async with models.running(plugins=(), rate_limit="execution_count"):
            pass


# Metrics


async def test_metrics_say_what_there_is_and_who_waits(models: Models) -> None:
    held = Held(models, a=group(units(2)), b=group(ONE))

    async with models.running(rate_limit="execution_count") as server:
        answers = begin(server, "a", "b")
        await held.executing()
        gauges = {
            family.name.removeprefix("naiad_rate_limit_"): [(dict(each.labels), each.value) for each in family.samples]
            for family in server.service(MetricsApi).collect()
            if family.name.startswith("naiad_rate_limit_")
        }
        await held.end_all()
        await asyncio.gather(*answers)

    labels = {"resource": "R", "device": "cpu"}
    assert gauges == {"capacity": [(labels, 2)], "in_use": [(labels, 2)], "waiting": [(labels, 1)]}


async def test_unloading_leaves_what_the_others_need(models: Models) -> None:
    models.add("large", double, group(units(7)))
    models.add("small", double, group(units(2)))
    options = {"model_control_mode": "explicit", "load_model": ("*",), "rate_limit": "execution_count"}

    def capacity(server: Server) -> list[float]:
        families = {family.name: family for family in server.service(MetricsApi).collect()}
        return [each.value for each in families["naiad_rate_limit_capacity"].samples]  # type: ignore[misc]

    async with models.running(**options) as server:
        before = capacity(server)
        await server.unload("large")
        await until(lambda: is_unloaded(server, "large"))
        assert (before, capacity(server)) == ([7], [2])
