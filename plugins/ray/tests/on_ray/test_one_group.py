"""One group that the proxies call directly: calls, autoscaling, rolling updates and a replica that is killed."""

from collections.abc import Callable
from types import ModuleType

import pytest

pytest.importorskip("ray")

import tritonclient.http as httpclient

from .applications import (
    APPLICATION,
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

    busy = start_load(
        group, threads=24, seconds=1.0
    )  # eight execute in each replica, and 15 or 16 wait if there is one
    up = wait_until(lambda: replicas_of("only") == 3)
    busy.wait_for_more(50)
    busy.stop()
    down = wait_until(lambda: replicas_of("only") == 1)
    quiet.wait_for_more()
    quiet.stop()

    busy.report(f"{by}: 1 to 3 replicas in {up:.1f} s, and to 1 in {down:.1f} s after the load ended")
    assert busy.failures == quiet.failures == []


def test_a_rolling_update_of_one_group_fails_no_request(group: Application, start_load: StartLoad) -> None:
    group.scale("replicas: 3")
    wait_for_replicas("only", 3)
    old = {*pids_of(replica_of("only"))}
    load = start_load(group, threads=6)
    load.wait_for_more()

    number = group.update()
    group.bring_up()
    seconds = wait_until(lambda: not old & {*pids_of(replica_of("only"))})
    load.wait_for_more()
    load.stop()

    load.report(f"rolling update of 3 replicas, the last old one ended {seconds:.1f} s after the new ones served")
    assert load.failures == []
    assert group.client(httpclient).infer("echo", tensor(httpclient, "x", 0)).as_numpy("y").tolist() == [[number]]


def test_a_killed_replica_of_one_group_fails_no_more_than_the_requests_it_had(
    group: Application, start_load: StartLoad
) -> None:
    group.scale("replicas: 3")
    wait_for_replicas("only", 3)
    load = start_load(group, threads=6)
    load.wait_for_more()

    killed = pids_of(replica_of("only"))[0]
    kill(killed)
    seconds = wait_for_replicas("only", 3, killed)
    load.wait_for_more()
    load.stop()

    load.report(f"kill -9 of one of 3 replicas that the proxies call, replaced in {seconds:.1f} s")
    assert len(load.failures) <= 6


def test_serve_run_deploys_the_file(nodes: Nodes, group: Application) -> None:
    number = group.update()

    file = f"config={group.folder / 'naiad-ray.yaml'}"
    run_command("serve", "run", "--non-blocking", "--name", APPLICATION, "naiad_ray:app", file, address=nodes.address)

    assert group.client(httpclient).infer("echo", tensor(httpclient, "x", 0)).as_numpy("y").tolist() == [[number]]


def test_the_application_goes_up_and_down_by_commands_on_a_running_cluster(nodes: Nodes, group: Application) -> None:
    number = group.update()

    up = run_command("naiad", "ray", "up", "--detach", str(group.folder), address=nodes.address)
    answer = group.client(httpclient).infer("echo", tensor(httpclient, "x", 0)).as_numpy("y").tolist()
    run_command("naiad", "ray", "down", address=nodes.address)

    assert f"application '{APPLICATION}' runs\nhttp at port {nodes.http}\n" in up
    assert answer == [[number]]
    assert pids_of(replica_of("only")) == []
