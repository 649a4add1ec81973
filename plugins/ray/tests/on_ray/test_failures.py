"""Processes that are killed under load: what clients see, and how the application comes back."""

from collections.abc import Callable

import pytest

pytest.importorskip("ray")

import tritonclient.grpc as grpcclient
import tritonclient.http as httpclient
from tritonclient.utils import InferenceServerException

from .applications import (
    THREADS,
    Application,
    Load,
    children_of,
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
pytestmark = [pytest.mark.ray, pytest.mark.timeout(600), pytest.mark.filterwarnings("default")]

CONTROLLER = "ray::ServeController"
UNKNOWN = "has ended; whether it was executed is unknown"


@pytest.fixture
def load(shop: Application, start_load: Callable[..., Load]) -> Load:
    """Requests of THREADS threads for the group `state`, with answers already."""
    load = start_load(shop)
    load.wait_for_more()
    return load


def test_a_killed_replica_fails_no_more_than_the_requests_it_had(load: Load) -> None:
    killed = pids_of(replica_of("state"))[0]
    kill(killed)
    seconds = wait_for_replicas("state", 2, killed)
    load.wait_for_more()
    load.stop()

    load.report(f"kill -9 of a replica, replaced in {seconds:.1f} s")
    assert len(load.failures) <= THREADS
    assert [each for each in load.failures if UNKNOWN not in each] == []


def test_a_killed_node_fails_no_more_than_the_requests_it_had(nodes: Nodes, shop: Application, load: Load) -> None:
    node = nodes.replace_front()
    raylet = node.all_processes["raylet"][0].process.pid
    killed = children_of(raylet)
    had = len({*killed} & {*pids_of(replica_of("state"))})

    kill(raylet, *killed)
    seconds = wait_for_replicas("state", 2, *killed)
    load.wait_for_more()
    load.stop()
    nodes.cluster.remove_node(node, allow_graceful=False)

    load.report(f"kill -9 of a node with {had} of 2 replicas, replaced in {seconds:.1f} s")
    assert had
    assert len(load.failures) <= THREADS
    assert [each for each in load.failures if UNKNOWN not in each] == []


def test_a_killed_controller_of_ray_serve_fails_no_request(load: Load) -> None:
    killed = pids_of(CONTROLLER)

    kill(*killed)
    seconds = wait_until(lambda: bool({*pids_of(CONTROLLER)} - {*killed}) and replicas_of("state") == 2)
    load.wait_for_more()
    load.stop()

    load.report(f"kill -9 of the controller of Ray Serve, back in {seconds:.1f} s")
    assert load.failures == []


def test_a_killed_control_plane_fails_no_request_and_comes_back_with_its_state(shop: Application, load: Load) -> None:
    client = shop.client(grpcclient)
    client.unload_model("till")
    assert client.is_server_ready()
    killed = pids_of(replica_of("control-plane"))

    kill(*killed)
    ready = client.is_server_ready()
    seconds = wait_for_replicas("control-plane", 1, *killed)
    load.wait_for_more()
    replica = pids_of(replica_of("state"))[0]
    load.stop()
    kill(replica)
    wait_for_replicas("state", 2, replica)
    later = [client.is_model_ready("till") for _ in range(10)]
    client.load_model("till")

    load.report(f"kill -9 of the control plane, back in {seconds:.1f} s")
    assert ready
    assert load.failures == []
    assert later == [False] * 10
    assert all(client.is_model_ready("till") for _ in range(10))


def test_a_killed_front_desk_fails_no_more_than_the_requests_it_had(load: Load) -> None:
    killed = pids_of(replica_of("front-desk"))

    kill(*killed)
    seconds = wait_for_replicas("front-desk", 1, *killed)
    load.wait_for_more()
    load.stop()

    load.report(f"kill -9 of the only front desk, replaced in {seconds:.1f} s")
    assert len(load.failures) <= THREADS


def test_a_load_and_an_unload_reach_all_replicas_and_those_that_come_later(shop: Application) -> None:
    client = shop.client(grpcclient)

    client.unload_model("echo")
    ready = [client.is_model_ready("echo") for _ in range(10)]
    killed = pids_of(replica_of("state"))[0]
    kill(killed)
    wait_for_replicas("state", 2, killed)
    later = [client.is_model_ready("echo") for _ in range(10)]
    client.load_model("echo")

    assert ready == later == [False] * 10
    assert all(client.is_model_ready("echo") for _ in range(10))


def test_a_sequence_whose_replica_dies_ends_with_an_error_that_says_so(shop: Application) -> None:
    client = shop.client(httpclient)
    for sequence in range(200, 220):
        client.infer("till", tensor(httpclient, "price", 1), sequence_id=sequence, sequence_start=True)

    killed = pids_of(replica_of("state"))[0]
    kill(killed)
    wait_for_replicas("state", 2, killed)
    ended, going_on = [], 0
    for sequence in range(200, 220):
        try:
            response = client.infer("till", tensor(httpclient, "price", 1), sequence_id=sequence)
            going_on += response.as_numpy("total")[0, 0] == 2.0
        except InferenceServerException as error:
            ended.append(str(error))

    assert len(ended) + going_on == 20
    assert ended
    assert going_on
    assert all("of group 'state', " in each for each in ended)
