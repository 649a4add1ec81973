"""One group that the proxies call directly, with models from a store: calls, autoscaling, updates, dead replicas."""

import re
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

pytest.importorskip("ray")

import tritonclient.http as httpclient

from .applications import (
    THREADS,
    Application,
    Load,
    kill,
    pids_of,
    replica_of,
    replicas_of,
    run_command,
    tensor,
    wait_for_replicas,
    wait_until,
)
from .conftest import Nodes
from .test_calls import CLIENTS, check_every_call

StartLoad = Callable[..., Load]

# grpcio and Ray warn of what these tests are not about
pytestmark = [pytest.mark.ray, pytest.mark.timeout(600), pytest.mark.filterwarnings("default")]

AUTOSCALE = "autoscale: {{minimum: 1, maximum: 3, {by}, interval: 0.5, look_back: 1, up_after: 0.5, down_after: 2}}"


@pytest.mark.parametrize("module", CLIENTS)
def test_every_method_of_a_client_is_answered_by_one_group_alone(module: ModuleType, group: Application) -> None:
    check_every_call(module, group)


@pytest.mark.parametrize("by", ["by: requests, target: 2", "by: queue, target: 1"], ids=["requests", "queue"])
def test_a_group_scales_from_one_to_three_and_back_without_a_failed_request(
    group: Application, start_load: StartLoad, by: str
) -> None:
    group.scale(AUTOSCALE.format(by=by))
    wait_for_replicas("only", 1)
    quiet = start_load(group, threads=1)

    # eight execute in each replica, and 15 or 16 wait while there is one
    busy = start_load(group, threads=24, seconds=0.5)
    up = wait_until(lambda: replicas_of("only") == 3)
    busy.wait_for_more(50)
    busy.stop()
    down = wait_until(lambda: replicas_of("only") == 1)
    quiet.wait_for_more()
    quiet.stop()

    busy.report(f"{by}: 1 to 3 replicas in {up:.1f} s, and to 1 in {down:.1f} s after the load ended")
    assert busy.failures == quiet.failures == []


def test_a_changed_object_of_the_store_replaces_the_replicas_without_a_failed_request(
    group: Application, start_load: StartLoad
) -> None:
    group.scale("replicas: 3")
    wait_for_replicas("only", 3)
    old = {*pids_of(replica_of("only"))}
    load = start_load(group, seconds=0.1)
    load.wait_for_more()

    number = group.update()
    group.bring_up()
    seconds = wait_until(lambda: not old & {*pids_of(replica_of("only"))})
    load.wait_for_more()
    load.stop()

    load.report(
        f"rolling update of 3 replicas from a store, the last old one ended {seconds:.1f} s after the new served"
    )
    assert load.failures == []
    assert answer_of(group) == [[number]]


def test_a_killed_replica_of_one_group_fails_no_more_than_the_requests_it_had(
    group: Application, start_load: StartLoad
) -> None:
    group.scale("replicas: 3")
    wait_for_replicas("only", 3)
    load = start_load(group, seconds=0.1)
    load.wait_for_more()

    killed = pids_of(replica_of("only"))[0]
    kill(killed)
    seconds = wait_for_replicas("only", 3, killed)
    load.wait_for_more()
    load.stop()

    load.report(f"kill -9 of one of 3 replicas that the proxies call, replaced in {seconds:.1f} s")
    assert len(load.failures) <= THREADS


def test_a_replica_whose_model_is_not_ready_any_more_is_replaced_without_a_failed_request(
    group: Application, start_load: StartLoad, sick: Path
) -> None:
    group.scale("replicas: 3")
    wait_for_replicas("only", 3)
    load = start_load(group, seconds=0.1)
    load.wait_for_more()

    replaced = pids_of(replica_of("only"))[0]
    sick.write_text(str(replaced))
    seconds = wait_for_replicas("only", 3, replaced)
    load.wait_for_more()
    load.stop()

    load.report(f"a replica that is not ready any more, replaced in {seconds:.1f} s")
    assert load.failures == []


def test_the_commands_of_the_page_bring_an_application_up_and_down(nodes: Nodes, group: Application) -> None:
    lines = "".join(blocks_of_the_page("sh")).splitlines()
    check, up, run, down = ((line, group.folder, nodes.address) for line in lines)
    (printed,) = blocks_of_the_page("text")
    group.scale("replicas: 1")

    first = group.update()
    output = run_command(*check) + run_command(*up)
    answers = [answer_of(group)]
    second = group.update()
    run_command(*run)
    answers.append(answer_of(group))
    run_command(*down)

    pattern = re.escape(printed.replace("8000", str(nodes.http)).replace("8001", str(nodes.grpc)))
    assert re.search(pattern.replace(re.escape("..."), ".*"), output, re.DOTALL)
    assert answers == [[[first]], [[second]]]
    assert pids_of(replica_of("only")) == []


def blocks_of_the_page(language: str) -> list[str]:
    """The blocks of docs/ray.md in that language that say nothing else of themselves."""
    page = (Path(__file__).resolve().parents[4] / "docs" / "ray.md").read_text()
    return re.findall(rf"(?ms)^```{language}\n(.*?)^```$", page)


def answer_of(group: Application) -> Any:
    """The answer of the model `echo` to 0, which is the number of the last update."""
    return group.client(httpclient).infer("echo", tensor(httpclient, "x", 0)).as_numpy("y").tolist()
