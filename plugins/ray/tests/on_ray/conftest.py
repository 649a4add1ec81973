"""One cluster of three nodes for all tests on Ray, and the two applications that run there one after the other.

The names of the files give the order: what needs a cluster of its own, then `shop`, then `group`.
"""

import os
import socket
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import obstore
import pytest
import requests
from moto.server import ThreadedMotoServer
from obstore.store import S3Store

from .applications import Application, Load, children_of, kill
from .models import GROUPS, ONE_GROUP, files_of, write_models

_T = TypeVar("_T")
_STORE = {"object_store_memory": 100 << 20}
ENVIRONMENT = {
    "RAY_USAGE_STATS_ENABLED": "0",
    # what waits for an event waits long on a busy machine; a process that has ended is noticed at once all the same
    "RAY_raylet_start_wait_time_s": "120",
    "RAY_health_check_timeout_ms": "60000",
    "RAY_SERVE_PROXY_HEALTH_CHECK_TIMEOUT_S": "60",
    "RAY_SERVE_PROXY_READY_CHECK_TIMEOUT_S": "60",
    "AWS_ACCESS_KEY_ID": "key",
    "AWS_SECRET_ACCESS_KEY": "secret",
    # what is repeated is repeated sooner than by default
    "RAY_health_check_period_ms": "500",
    "RAY_SERVE_HANDLE_AUTOSCALING_METRIC_PUSH_INTERVAL_S": "0.5",
    "RAY_SERVE_REPLICA_AUTOSCALING_METRIC_PUSH_INTERVAL_S": "0.5",
}


@dataclass
class Nodes:
    """A cluster whose nodes are processes of this machine. Clients use the proxy of the head only."""

    cluster: Any
    address: str
    http: int
    grpc: int
    front: Any = None

    def replace_front(self) -> Any:
        """Start another node with room for replicas, and return the one that was there before."""
        before = self.front
        self.front = started(lambda: self.cluster.add_node(num_cpus=1, **_STORE))
        self.cluster.wait_for_nodes()
        return before


def free_port() -> int:
    """A port that is free now."""
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        return int(listening.getsockname()[1])


def started(start: Callable[[], _T]) -> _T:
    """A node, or a cluster with its first one; another where that is not up in the 30 seconds that Ray gives it.

    This time cannot be set, and on a busy machine the first imports of Ray alone may take it.
    """
    for remaining in (5, 4, 3, 2, 1, 0):
        before = {*children_of(os.getpid())}
        try:
            return start()
        except Exception as error:
            if not remaining or "timed out during startup" not in str(error):
                raise
            kill(*({*children_of(os.getpid())} - before))
    raise AssertionError


@pytest.fixture(scope="session")
def sick(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The file with the number of the process in which the model `frail` is not ready."""
    file = tmp_path_factory.mktemp("sick") / "process"
    file.write_text("")
    return file


@pytest.fixture(scope="session")
def nodes(sick: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Nodes]:
    """A head without replicas, a node with a GPU and the label `row: back`, and one without, each with one processor.

    So each has one replica of the group `state`. The GPU is bookkeeping. The processes end with the tests.
    """
    ray = pytest.importorskip("ray")
    clusters = pytest.importorskip("ray.cluster_utils")
    os.environ.update(
        ENVIRONMENT,
        NAIAD_TEST_SICK=str(sick),
        XDG_CACHE_HOME=str(tmp_path_factory.mktemp("cache")),
        RAY_SERVE_WORKER_PROXY_HTTP_PORT=str(free_port()),
        RAY_SERVE_WORKER_PROXY_GRPC_PORT=str(free_port()),
    )
    head = {"num_cpus": 0, **_STORE, "include_dashboard": False, "include_log_monitor": False}
    cluster = started(lambda: clusters.Cluster(initialize_head=True, head_node_args=head))
    ray.init(address=cluster.address, log_to_driver=False, logging_level="warning")
    nodes = Nodes(cluster, cluster.address, free_port(), free_port())
    started(lambda: cluster.add_node(num_cpus=1, num_gpus=1, labels={"row": "back"}, **_STORE))
    nodes.replace_front()
    yield nodes
    from ray import serve

    serve.shutdown()
    ray.shutdown()
    cluster.shutdown()


@pytest.fixture
def start_load() -> Iterator[Callable[..., Load]]:
    """`Load` with these arguments, stopped with the test."""
    loads: list[Load] = []

    def start(*arguments: Any, **named: Any) -> Load:
        loads.append(Load(*arguments, **named))
        return loads[-1]

    yield start
    for load in loads:
        load.stop()


@pytest.fixture(scope="session")
def shop(nodes: Nodes, tmp_path_factory: pytest.TempPathFactory) -> Application:
    """An application with the groups `state` (2 replicas) and `rest` behind a front desk."""
    folder = tmp_path_factory.mktemp("shop")
    write_models(folder / "models", "echo", "till", "twice", "words")
    (folder / "naiad-ray.yaml").write_text(GROUPS.format(http=nodes.http, grpc=nodes.grpc))
    application = Application(folder, f"127.0.0.1:{nodes.http}", f"127.0.0.1:{nodes.grpc}")
    application.bring_up()
    return application


@pytest.fixture(scope="session")
def group(nodes: Nodes, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Application]:
    """An application with the group `only`, which the proxies call directly, in place of `shop`; see `scale`.

    Its models are in a bucket of S3.
    """
    folder = tmp_path_factory.mktemp("group")
    server = ThreadedMotoServer("127.0.0.1", port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    requests.put(f"http://{host}:{port}/bucket", timeout=10)
    bucket = S3Store(
        "bucket", endpoint=f"http://{host}:{port}", region="us-east-1", client_options={"allow_http": True}
    )
    for path, text in files_of("echo", "frail", "words"):
        obstore.put(bucket, f"models/{path}", text.encode(), use_multipart=False)
    repository = f"s3://{host}:{port}/bucket/models"
    file = ONE_GROUP.format(repository=repository, http=nodes.http, grpc=nodes.grpc)
    (folder / "naiad-ray.yaml").write_text(file)
    application = Application(folder, f"127.0.0.1:{nodes.http}", f"127.0.0.1:{nodes.grpc}", bucket)
    application.bring_up()
    yield application
    server.stop()
