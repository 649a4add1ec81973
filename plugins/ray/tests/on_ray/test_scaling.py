"""Replicas that come and go under load, by autoscaling and by rolling updates, without one failed request."""

import pytest

pytest.importorskip("ray")

import tritonclient.http as httpclient

from .applications import (
    Application,
    Load,
    kill,
    pids_of,
    replica_of,
    replicas_of,
    tensor,
    wait_for_replicas,
    wait_until,
)
from .conftest import Nodes

# grpcio and Ray warn of what these tests are not about
pytestmark = [pytest.mark.ray, pytest.mark.timeout(300), pytest.mark.filterwarnings("default")]


def edit(application: Application, before: str, after: str) -> None:
    """Change the model `echo`."""
    source = application.folder / "models" / "echo" / "1" / "model.py"
    source.write_text(source.read_text().replace(before, after))


def test_a_group_scales_from_one_to_three_and_back_without_a_failed_request(nodes: Nodes, group: Application) -> None:
    quiet = Load(group, threads=1)
    assert replicas_of("only") == 1

    busy = Load(group, threads=12, seconds=0.1)
    up = wait_until(lambda: replicas_of("only") == 3)
    busy.wait_for_more(50)
    busy.stop()
    down = wait_until(lambda: replicas_of("only") == 1)
    quiet.wait_for_more()
    quiet.stop()

    busy.report(f"1 to 3 replicas in {up:.1f} s, and to 1 in {down:.1f} s after the load ended")
    assert busy.failures == quiet.failures == []


def test_a_rolling_update_of_one_group_fails_no_request(nodes: Nodes, group: Application) -> None:
    client = group.client(httpclient)
    file = group.folder / "naiad-ray.yaml"
    head, _, _ = file.read_text().partition("autoscale")
    file.write_text(f"{head}replicas: 3\n")
    group.bring_up()
    old = {*pids_of(replica_of("only"))}
    load = Load(group, threads=6)
    load.wait_for_more()

    edit(group, "return x", "return x + 1")
    group.bring_up()
    seconds = wait_until(lambda: not old & {*pids_of(replica_of("only"))})
    load.wait_for_more()
    load.stop()

    load.report(f"rolling update of 3 replicas, the last old one ended {seconds:.1f} s after the new ones served")
    assert load.failures == []
    assert client.infer("echo", tensor(httpclient, "x", 0)).as_numpy("y").tolist() == [[1.0]]


def test_a_killed_replica_of_one_group_fails_no_more_than_the_requests_it_had(nodes: Nodes, group: Application) -> None:
    load = Load(group, threads=6)
    load.wait_for_more()

    killed = pids_of(replica_of("only"))[0]
    kill(killed)
    seconds = wait_for_replicas("only", 3, killed)
    load.wait_for_more()
    load.stop()

    load.report(f"kill -9 of one of 3 replicas that the proxies call, replaced in {seconds:.1f} s")
    assert len(load.failures) <= 6


def test_a_rolling_update_behind_a_front_desk_fails_no_request(nodes: Nodes, shop: Application) -> None:
    client = shop.client(httpclient)
    old = {*pids_of(replica_of("state"))}
    kept = {*pids_of(replica_of("front-desk")), *pids_of(replica_of("control-plane"))}
    load = Load(shop, threads=6)
    load.wait_for_more()

    edit(shop, "return x", "return x + 1")
    shop.bring_up()
    seconds = wait_until(lambda: not old & {*pids_of(replica_of("state"))})
    load.wait_for_more()
    load.stop()

    load.report(f"rolling update behind a front desk, the last old one ended {seconds:.1f} s after the new ones served")
    assert load.failures == []
    assert kept == {*pids_of(replica_of("front-desk")), *pids_of(replica_of("control-plane"))}
    assert client.infer("echo", tensor(httpclient, "x", 0)).as_numpy("y").tolist() == [[1.0]]


def test_a_front_desk_without_a_second_one_is_replaced_without_a_failed_request(
    nodes: Nodes, shop: Application
) -> None:
    (old,) = pids_of(replica_of("front-desk"))
    kept = {*pids_of(replica_of("control-plane"))}
    file = shop.folder / "naiad-ray.yaml"
    load = Load(shop, threads=6)
    load.wait_for_more()

    file.write_text(file.read_text() + "options: {log-verbose: 1}\n")
    shop.bring_up()
    wait_until(lambda: old not in pids_of(replica_of("front-desk")))
    load.wait_for_more()
    load.stop()

    load.report("replacement of the only front desk, with a surge of one")
    assert load.failures == []
    assert kept == {*pids_of(replica_of("control-plane"))}
