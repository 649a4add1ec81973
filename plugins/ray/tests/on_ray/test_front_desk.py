"""Rolling updates behind a front desk, and of the front desk itself, without one failed request."""

from collections.abc import Callable

import pytest

pytest.importorskip("ray")

import tritonclient.http as httpclient

from .applications import Application, Load, pids_of, replica_of, tensor, wait_until

StartLoad = Callable[..., Load]

# grpcio and Ray warn of what these tests are not about
pytestmark = [pytest.mark.ray, pytest.mark.timeout(600), pytest.mark.filterwarnings("default")]


def test_a_rolling_update_behind_a_front_desk_fails_no_request(shop: Application, start_load: StartLoad) -> None:
    old = {*pids_of(replica_of("state"))}
    kept = {*pids_of(replica_of("front-desk")), *pids_of(replica_of("control-plane"))}
    load = start_load(shop, seconds=0.1)
    load.wait_for_more()

    number = shop.update()
    shop.bring_up()
    seconds = wait_until(lambda: not old & {*pids_of(replica_of("state"))})
    load.wait_for_more()
    load.stop()

    load.report(f"rolling update behind a front desk, the last old one ended {seconds:.1f} s after the new ones served")
    assert load.failures == []
    assert kept == {*pids_of(replica_of("front-desk")), *pids_of(replica_of("control-plane"))}
    assert shop.client(httpclient).infer("echo", tensor(httpclient, "x", 0)).as_numpy("y").tolist() == [[number]]


def test_a_front_desk_without_a_second_one_is_replaced_without_a_failed_request(
    shop: Application, start_load: StartLoad
) -> None:
    (old,) = pids_of(replica_of("front-desk"))
    kept = {*pids_of(replica_of("control-plane"))}
    file = shop.folder / "naiad-ray.yaml"
    load = start_load(shop, seconds=0.1)
    load.wait_for_more()

    file.write_text(file.read_text() + "options: {log-verbose: 1}\n")
    shop.bring_up()
    wait_until(lambda: old not in pids_of(replica_of("front-desk")))
    load.wait_for_more()
    load.stop()

    load.report("replacement of the only front desk, with a surge of one")
    assert load.failures == []
    assert kept == {*pids_of(replica_of("control-plane"))}
