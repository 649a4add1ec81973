"""The occupancy of a server: which instances execute requests, and which requests wait for them."""

import asyncio
import threading
from pathlib import Path
from typing import NoReturn

from naiad.backend import Answer, Batch
from naiad_testing.in_loop import off_the_loop, request, running, write_model
from naiad_testing.loops import until
from naiad_testing.servables import FakeServables
from naiad_testing.steered import Steered


async def test_it_lists_the_instances_that_execute_and_the_requests_that_wait(tmp_path: Path) -> None:
    executing, release = threading.Event(), threading.Event()

    def holds(batch: Batch) -> Answer:
        executing.set()
        assert release.wait(10)
        return {"OUTPUT": batch.input("INPUT")}

    write_model(tmp_path, "m")
    write_model(tmp_path, "idle")

    async with running(tmp_path, Steered(execute=holds)) as server:
        before = list(server.occupancy())
        first = asyncio.ensure_future(server.infer(request("m", 1, id="first")))
        await off_the_loop(executing.wait)
        second = asyncio.ensure_future(server.infer(request("m", 2, id="second")))
        await until(lambda: sum(each.waiting for each in server.version_reports()))
        (resource,) = server.occupancy()
        users = [[each.request.id for each in group] for group in resource.users]
        waiting = [each.request.id for each in resource.waiting()]
        release.set()
        await asyncio.gather(first, second)
        await until(lambda: not list(server.occupancy()))

    assert before == []
    assert (resource.name, resource.slots) == ("an instance of model 'm'", 1)
    assert (users, waiting) == ([["first"]], ["second"])


async def test_a_servable_whose_code_raises_is_left_out(tmp_path: Path) -> None:
    def raises() -> NoReturn:
        raise SystemExit("the servable broke")

    write_model(tmp_path, "m")
    (tmp_path / "a" / "1").mkdir(parents=True)
    config = 'platform: "alias"\nparameters { key: "target" value { string_value: "m" } }\n'
    (tmp_path / "a" / "config.pbtxt").write_text(config, encoding="utf-8")

    async with running(tmp_path, Steered(), FakeServables(occupancy=raises)) as server:
        assert [each.name for each in server.index(ready=True)] == ["a", "m"]
        assert list(server.occupancy()) == []
