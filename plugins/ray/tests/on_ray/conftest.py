"""One cluster for all tests on Ray, and the models that they deploy."""

import os
import socket
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

ECHO = """
import time
from naiad_custom import FP32, Array, model

@model(max_batch_size=8, outputs="y")
def echo(x: Array[FP32, 1]) -> Array[FP32, 1]:
    time.sleep(float(x.max()))
    return x
"""

TILL = """
from naiad_custom import FP32, Array, model

@model(max_batch_size=16, outputs=("total", "bill_after"))
def add(price: Array[FP32, 1], bill: Array[FP32, 1]) -> tuple[Array[FP32, 1], Array[FP32, 1]]:
    total = bill + price
    return total, total
"""

OF_TILL = """
sequence_batching {
  oldest { max_candidate_sequences: 100 }
  max_sequence_idle_microseconds: 60000000
  state [ { input_name: "bill" output_name: "bill_after" data_type: TYPE_FP32 dims: [ 1 ] } ]
}
"""

WORDS = """
from collections.abc import AsyncIterator
import numpy as np
from naiad_custom import BYTES, Array, model

@model(outputs="word")
async def words(text: Array[BYTES, 1]) -> AsyncIterator[Array[BYTES, 1]]:
    for word in text[0].split():
        yield np.array([word], dtype=object)
"""

TWICE = """
platform: "ensemble"
max_batch_size: 8
input { name: "x" data_type: TYPE_FP32 dims: [ 1 ] }
output { name: "z" data_type: TYPE_FP32 dims: [ 1 ] }
ensemble_scheduling {
  step { model_name: "echo" model_version: -1 input_map { key: "x" value: "x" } output_map { key: "y" value: "m" } }
  step { model_name: "echo" model_version: -1 input_map { key: "x" value: "m" } output_map { key: "y" value: "z" } }
}
"""

FILE = """
repository: models
http: {{host: 127.0.0.1, port: {http}}}
grpc: {{port: {grpc}}}
health_seconds: 1
drain_seconds: 10
front_desk: {{num_cpus: 0.1}}
groups:
  - {{name: state, models: [till, echo], replicas: 2, num_cpus: 0.1}}
  - {{name: rest, num_cpus: 0.1}}
"""


def write_model(repository: Path, name: str, source: str, config: str = "") -> None:
    (repository / name / "1").mkdir(parents=True, exist_ok=True)
    if source:
        (repository / name / "1" / "model.py").write_text(source)
    if config:
        (repository / name / "config.pbtxt").write_text(config)


def free_port() -> int:
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        return int(listening.getsockname()[1])


@pytest.fixture(scope="session")
def cluster() -> Iterator[Any]:
    """A node in processes of this machine, which end with the tests."""
    os.environ["RAY_raylet_start_wait_time_s"] = "120"  # noqa: SIM112 - Ray's name; 30 seconds are few on busy machines
    ray = pytest.importorskip("ray")
    clusters = pytest.importorskip("ray.cluster_utils")
    nodes = clusters.Cluster(initialize_head=True, head_node_args={"num_cpus": 4, "include_dashboard": False})
    ray.init(address=nodes.address, log_to_driver=False, logging_level="warning")
    yield nodes
    from ray import serve

    serve.shutdown()
    ray.shutdown()
    nodes.shutdown()


@pytest.fixture(scope="session")
def shop(cluster: Any, tmp_path_factory: pytest.TempPathFactory) -> SimpleNamespace:
    """A deployed application with two groups: `folder` has its file, `http` and `grpc` are its addresses."""
    from naiad_ray.deploying import deploy
    from naiad_ray.reading import read_description

    folder = tmp_path_factory.mktemp("shop")
    models = folder / "models"
    write_model(models, "echo", ECHO)
    write_model(models, "till", TILL, OF_TILL)
    write_model(models, "words", WORDS)
    write_model(models, "twice", "", TWICE)
    http, grpc = free_port(), free_port()
    (folder / "naiad-ray.yaml").write_text(FILE.format(http=http, grpc=grpc))

    def bring_up() -> None:
        deploy(read_description(folder))

    bring_up()
    return SimpleNamespace(folder=folder, http=f"127.0.0.1:{http}", grpc=f"127.0.0.1:{grpc}", bring_up=bring_up)
