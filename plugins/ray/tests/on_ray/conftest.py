"""One cluster of three nodes for all tests on Ray, and the two applications that they deploy on it."""

import os
import socket
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest

from .applications import Application
from .models import GROUPS, MODELS, ONE_GROUP, write_models

_STORE = {"object_store_memory": 100 << 20}
_ENVIRONMENT = {
    "RAY_raylet_start_wait_time_s": "120",  # 30 seconds are few on busy machines
    "RAY_SERVE_HANDLE_AUTOSCALING_METRIC_PUSH_INTERVAL_S": "0.5",
    "RAY_SERVE_REPLICA_AUTOSCALING_METRIC_PUSH_INTERVAL_S": "0.5",
}


@dataclass
class Nodes:
    """A cluster whose nodes are processes of this machine. Clients use the proxy of the head only."""

    cluster: Any
    http: int
    grpc: int
    front: Any = None

    def replace_front(self) -> Any:
        """Start another node with room for replicas, and return the one that was there before."""
        before = self.front
        self.front = self.cluster.add_node(num_cpus=1, **_STORE)
        self.cluster.wait_for_nodes()
        return before


def free_port() -> int:
    """A port that is free now."""
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        return int(listening.getsockname()[1])


@pytest.fixture(scope="session")
def nodes() -> Iterator[Nodes]:
    """A head without replicas, a node with the label `row: back`, and one without, each with one processor.

    So each has one replica of the group `state`. The processes end with the tests.
    """
    ray = pytest.importorskip("ray")
    clusters = pytest.importorskip("ray.cluster_utils")
    os.environ.update(
        _ENVIRONMENT,
        RAY_SERVE_WORKER_PROXY_HTTP_PORT=str(free_port()),
        RAY_SERVE_WORKER_PROXY_GRPC_PORT=str(free_port()),
    )
    cluster = clusters.Cluster(
        initialize_head=True, head_node_args={"num_cpus": 0, **_STORE, "include_dashboard": False}
    )
    ray.init(address=cluster.address, log_to_driver=False, logging_level="warning")
    nodes = Nodes(cluster, free_port(), free_port())
    cluster.add_node(num_cpus=1, labels={"row": "back"}, **_STORE)
    nodes.replace_front()
    yield nodes
    from ray import serve

    serve.shutdown()
    ray.shutdown()
    cluster.shutdown()


@pytest.fixture(scope="module")
def shop(nodes: Nodes, tmp_path_factory: pytest.TempPathFactory) -> Application:
    """An application with the groups `state` (2 replicas) and `rest` behind a front desk."""
    folder = tmp_path_factory.mktemp("shop")
    write_models(folder / "models", *MODELS)
    (folder / "naiad-ray.yaml").write_text(GROUPS.format(http=nodes.http, grpc=nodes.grpc))
    application = Application(folder, f"127.0.0.1:{nodes.http}", f"127.0.0.1:{nodes.grpc}")
    application.bring_up()
    return application


@pytest.fixture(scope="module")
def group(nodes: Nodes, tmp_path_factory: pytest.TempPathFactory) -> Application:
    """An application with the group `only`, which the proxies call directly, with 1 to 3 replicas for its load."""
    folder = tmp_path_factory.mktemp("group")
    write_models(folder / "models", "echo", "words")
    autoscale = "{minimum: 1, maximum: 3, target: 2, interval: 0.5, look_back: 1, up_after: 0.5, down_after: 2}"
    text = ONE_GROUP.format(http=nodes.http, grpc=nodes.grpc, scale=f"autoscale: {autoscale}")
    (folder / "naiad-ray.yaml").write_text(text)
    application = Application(folder, f"127.0.0.1:{nodes.http}", f"127.0.0.1:{nodes.grpc}")
    application.bring_up()
    return application
