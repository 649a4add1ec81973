"""The rate limiter in a running server: which executions wait for which, and what is refused."""

import asyncio
from collections.abc import Callable
from concurrent.futures import Future
from pathlib import Path
from typing import Any

import pytest

from naiad import Server
from naiad.backend import Answer, Batch
from naiad.errors import InvalidArgumentError
from naiad.types import Response

from .loops import turns, until
from .serving import FLOATS, Steered, request, running, write_model

ON_THE_LOOP = 'parameters { key: "execute_on" value { string_value: "event_loop" } }'


class Gates:
    """A backend for each model; what executes, on the event loop, ends when the test says so. `begun` has all of it."""

    def __init__(self, root: Path, **groups: str) -> None:
        self.begun: list[str] = []
        self._root = root
        self._executing: list[tuple[str, Future[Answer]]] = []
        self.plugins = [Steered(name, execute=self._execute_of(name)) for name in groups]
        for name, group in groups.items():
            write_model(root, name, f"{FLOATS} {ON_THE_LOOP} {group}", backend=name)

    def _execute_of(self, name: str) -> Callable[[Batch], Future[Answer]]:
        def execute(batch: Batch) -> Future[Answer]:
            future: Future[Answer] = Future()
            self.begun.append(name)
            self._executing.append((name, future))
            return future

        return execute

    async def executing(self) -> list[str]:
        """The models that execute, after all that is ready has happened."""
        await turns()
        return sorted(name for name, _ in self._executing)

    def end(self, name: str) -> None:
        """Let one execution of the model end."""
        index = next(index for index, (each, _) in enumerate(self._executing) if each == name)
        _, future = self._executing.pop(index)
        future.set_result({"OUTPUT": request("m", 1).inputs["INPUT"].array})

    async def end_all(self) -> None:
        """Let everything end that executes or waits."""
        while await self.executing():
            self.end(self._executing[0][0])


def group(*resources: str, priority: int = 0, count: int = 1) -> str:
    told = " ".join(f"resources {{ {resource} }}" for resource in resources)
    return f"instance_group {{ kind: KIND_CPU count: {count} rate_limiter {{ {told} priority: {priority} }} }}"


def is_unloaded(server: Server, name: str) -> bool:
    return ("UNAVAILABLE", "unloaded") in [(each.state, each.reason) for each in server.index() if each.name == name]


def asked(server: Server, *models: str) -> list["asyncio.Future[Response]"]:
    """A request to each of the models, on its way."""
    return [asyncio.ensure_future(server.infer(request(model, 1))) for model in models]


R = 'name: "R" count: {}'
ONE = R.format(1)
EVERYWHERE = 'name: "R" global: true count: 1'


async def test_without_the_option_nothing_is_limited(tmp_path: Path) -> None:
    gates = Gates(tmp_path, a=group(ONE), b=group(ONE))

    async with running(tmp_path, *gates.plugins) as server:
        answers = asked(server, "a", "b")
        assert await gates.executing() == ["a", "b"]
        await gates.end_all()
        await asyncio.gather(*answers)


async def test_models_that_share_a_resource_execute_one_after_the_other(tmp_path: Path) -> None:
    gates = Gates(tmp_path, a=group(ONE), b=group(ONE))

    async with running(tmp_path, *gates.plugins, rate_limit="execution_count") as server:
        answers = asked(server, "a", "b")
        assert await gates.executing() == ["a"]
        gates.end("a")
        assert await gates.executing() == ["b"]
        await gates.end_all()
        await asyncio.gather(*answers)


async def test_an_explicit_limit_lets_as_many_execute_as_it_has_units_for(tmp_path: Path) -> None:
    gates = Gates(tmp_path, a=group(ONE, count=3), b=group(R.format(2)))

    async with running(tmp_path, *gates.plugins, rate_limit="execution_count", rate_limit_resource=("R:4",)) as server:
        answers = asked(server, "a", "a", "a", "b")
        assert await gates.executing() == ["a", "a", "a"]
        gates.end("a")
        assert await gates.executing() == ["a", "a", "b"]
        await gates.end_all()
        await asyncio.gather(*answers)


async def test_models_without_resources_never_wait(tmp_path: Path) -> None:
    gates = Gates(tmp_path, a=group(ONE), free="")

    async with running(tmp_path, *gates.plugins, rate_limit="execution_count") as server:
        answers = asked(server, "a", "free")
        assert await gates.executing() == ["a", "free"]
        await gates.end_all()
        await asyncio.gather(*answers)


async def test_a_global_resource_is_one_for_all_devices_and_others_are_not(tmp_path: Path) -> None:
    everywhere = 'name: "G" global: true count: 1'
    gates = Gates(tmp_path, a=group(everywhere), b=group(everywhere), c=group(ONE))

    async with running(tmp_path, *gates.plugins, rate_limit="execution_count") as server:
        answers = asked(server, "a", "b", "c")
        assert await gates.executing() == ["a", "c"]
        await gates.end_all()
        await asyncio.gather(*answers)


async def test_the_larger_priority_has_its_turn_less_often(tmp_path: Path) -> None:
    gates = Gates(tmp_path, often=group(ONE, priority=1), seldom=group(ONE, priority=3))

    async with running(tmp_path, *gates.plugins, rate_limit="execution_count") as server:
        answers = asked(server, *["often"] * 12, *["seldom"] * 12)
        for _ in range(12):
            (executing,) = await gates.executing()
            gates.end(executing)
        await gates.executing()
        order = gates.begun[:12]
        await gates.end_all()
        await asyncio.gather(*answers)

    assert (order.count("often"), order.count("seldom")) == (9, 3)


async def test_a_request_that_is_taken_back_while_it_waits_keeps_nothing_from_the_others(tmp_path: Path) -> None:
    gates = Gates(tmp_path, a=group(ONE), b=group(R.format(2)), c=group(ONE))

    async with running(tmp_path, *gates.plugins, rate_limit="execution_count") as server:
        (first,) = asked(server, "a")
        await gates.executing()
        (waits,) = asked(server, "b")
        await gates.executing()
        (behind,) = asked(server, "c")
        assert await gates.executing() == ["a"]
        waits.cancel()
        assert await gates.executing() == ["a", "c"]
        await gates.end_all()
        await asyncio.gather(first, behind)


async def test_a_worker_that_dies_gives_back_what_it_held(tmp_path: Path) -> None:
    def die(batch: Batch) -> Any:
        raise SystemExit("gone")

    write_model(tmp_path, "mortal", f"{FLOATS} {group(ONE)}", backend="mortal")
    gates = Gates(tmp_path, other=group(ONE))

    async with running(
        tmp_path, Steered("mortal", execute=die), *gates.plugins, rate_limit="execution_count"
    ) as server:
        lost, answer = asked(server, "mortal", "other")
        await asyncio.gather(lost, return_exceptions=True)
        await until(lambda: gates.begun)
        assert await gates.executing() == ["other"]
        await gates.end_all()
        await answer


@pytest.mark.parametrize("execute_on", ["thread", "event_loop"])
async def test_many_requests_to_many_models_are_all_answered(tmp_path: Path, execute_on: str) -> None:
    backend = Steered()
    home = f'parameters {{ key: "execute_on" value {{ string_value: "{execute_on}" }} }}'
    for index in range(5):
        resources = [f'name: "R" count: {index % 3 + 1}', f'name: "S{index % 2}" count: 1']
        write_model(tmp_path, f"m{index}", f"{FLOATS} {home} {group(*resources, count=2, priority=index)}")

    async with running(tmp_path, backend, rate_limit="execution_count") as server:
        answers = await asyncio.gather(*asked(server, *[f"m{index % 5}" for index in range(300)]))

    assert len(answers) == 300


# What is refused


async def test_a_limit_that_is_too_small_fails_the_load_and_says_by_how_much(tmp_path: Path) -> None:
    backend = Steered()
    write_model(tmp_path, "m", f"{FLOATS} {group(R.format(5))}")

    async with running(tmp_path, backend, rate_limit="execution_count", rate_limit_resource=("R:4",)) as server:
        (entry,) = server.index()

    assert entry.state == "UNAVAILABLE"
    assert 'Resource count for "R" is limited to 4 which will prevent scheduling' in entry.reason
    assert "the minimum required count is 5" in entry.reason
    assert backend.placements == []


async def test_a_resource_of_two_scopes_fails_the_load_of_the_second_model(tmp_path: Path) -> None:
    write_model(tmp_path, "a", f"{FLOATS} {group(ONE)}")
    write_model(tmp_path, "b", f"{FLOATS} {group(EVERYWHERE)}")
    options = {"model_control_mode": "explicit", "load_model": ("a",), "rate_limit": "execution_count"}

    async with running(tmp_path, Steered(), **options) as server:
        with pytest.raises(InvalidArgumentError, match='Resource "R" is present as both global and device-specific'):
            await server.load("b")
        await server.unload("a")
        await until(lambda: is_unloaded(server, "a"))
        await server.load("b")


async def test_a_limit_that_cannot_be_read_ends_the_start(tmp_path: Path) -> None:
    with pytest.raises(InvalidArgumentError, match="--rate-limit-resource 'R' must be NAME:COUNT"):
        async with running(tmp_path, rate_limit="execution_count", rate_limit_resource=("R",)):
            pass


async def test_limits_without_the_limiter_are_pointed_out(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    async with running(tmp_path, rate_limit_resource=("R:1",)):
        pass

    assert "--rate-limit-resource changes nothing without --rate-limit=execution_count" in caplog.text


# What is told


async def test_metrics_tell_what_there_is_and_who_waits(tmp_path: Path) -> None:
    gates = Gates(tmp_path, a=group(R.format(2)), b=group(ONE))

    async with running(tmp_path, *gates.plugins, rate_limit="execution_count") as server:
        answers = asked(server, "a", "b")
        await gates.executing()
        told = {
            family.name.removeprefix("naiad_rate_limit_"): [(dict(each.labels), each.value) for each in family.samples]
            for family in server.metrics.collect()
            if family.name.startswith("naiad_rate_limit_")
        }
        await gates.end_all()
        await asyncio.gather(*answers)

    labels = {"resource": "R", "device": "cpu"}
    assert told == {"capacity": [(labels, 2)], "in_use": [(labels, 2)], "waiting": [(labels, 1)]}


async def test_unloading_leaves_what_the_others_need(tmp_path: Path) -> None:
    write_model(tmp_path, "large", f"{FLOATS} {group(R.format(7))}")
    write_model(tmp_path, "small", f"{FLOATS} {group(R.format(2))}")
    options = {"model_control_mode": "explicit", "load_model": ("*",), "rate_limit": "execution_count"}

    def capacity(server: Server) -> list[float]:
        families = {family.name: family for family in server.metrics.collect()}
        return [each.value for each in families["naiad_rate_limit_capacity"].samples]  # type: ignore[misc]

    async with running(tmp_path, Steered(), **options) as server:
        before = capacity(server)
        await server.unload("large")
        await until(lambda: is_unloaded(server, "large"))
        assert (before, capacity(server)) == ([7], [2])
