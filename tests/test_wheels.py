"""Each plugin works alone beside `naiad`, installed from wheels, with what it declares to need and nothing else.

The wheels are built and installed by pip into empty environments. What they need of others is not downloaded: exactly
the distributions that the wheels' own metadata asks for, and what these ask for, are linked in from the environment of
the tests, and `pip check` says whether anything is missing.
"""

import subprocess
import urllib.request
from collections.abc import Callable, Iterable
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING

import onnx
import pytest
import tritonclient.grpc as triton

from .environments import PIP, empty, link, needed

if TYPE_CHECKING:
    from conftest import ServerProcess

ROOT = Path(__file__).parents[1]
PLUGINS = (
    "plugins/cache-local",
    "plugins/cache-redis",
    "plugins/caffe2",
    "plugins/custom",
    "plugins/onnx",
    "plugins/openvino",
    "plugins/scheduler-dynamic",
    "plugins/scheduler-ensemble",
    "plugins/scheduler-sequence",
    "plugins/tensorflow",
    "plugins/tensorrt",
    "plugins/torch",
)
MEMBERS = ("core", *PLUGINS, "frontends/http", "frontends/grpc", "frontends/metrics")

SERVES_A_FUNCTION = """
import naiad_custom
from naiad.testing import serve

@naiad_custom.model
def double(x: naiad_custom.Array[naiad_custom.FP32, 2]) -> naiad_custom.Array[naiad_custom.FP32, 2]:
    return x + x

with serve(double) as client:
    (out,) = client.infer(x=[1, 2]).values()
    assert out.tolist() == [2, 4], out

from naiad_custom.include import include_dir

assert (include_dir() / "naiad_custom.h").is_file()
"""

SERVES_ONNX = """
import sys
from naiad.testing import serve

with serve(sys.argv[1]) as client:
    (out,) = client.infer(x=[1, 2]).values()
    assert out.tolist() == [2, 4], out
"""

READS_ONNX = """
import sys
from pathlib import Path
from naiad.testing import serve

folder = Path(sys.argv[1]) / "double"
(folder / "config.pbtxt").write_text('backend: "openvino" default_model_filename: "model.onnx"')
with serve(sys.argv[1]) as client:
    (out,) = client.infer(x=[1, 2]).values()
    assert out.tolist() == [2, 4], out
"""

SERVES_A_MODULE = """
from pathlib import Path
from naiad.testing import serve

model = "from torch import nn\\n\\nclass Double(nn.Module):\\n    def forward(self, x):\\n        return x + x\\n"
config = 'backend: "pytorch" runtime: "model.py"\\n' + "\\n".join(
    kind + ' { name: "' + name + '" data_type: TYPE_FP32 dims: 2 }' for kind, name in (("input", "x"), ("output", "y"))
)
Path("models/double/1").mkdir(parents=True)
Path("models/double/1/model.py").write_text(model)
Path("models/double/config.pbtxt").write_text(config)
with serve("models") as client:
    (out,) = client.infer(x=[1, 2]).values()
    assert out.tolist() == [2, 4], out
"""

SERVES_A_GRAPH = """
import os
from pathlib import Path

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "2"
import tensorflow as tf
from naiad.testing import serve

Path("models/double/1").mkdir(parents=True)
with tf.Graph().as_default() as graph:
    x = tf.compat.v1.placeholder(tf.float32, [2], name="x")
    tf.add(x, x, name="y")
Path("models/double/1/model.graphdef").write_bytes(graph.as_graph_def().SerializeToString())
Path("models/double/config.pbtxt").write_text(
    'platform: "tensorflow_graphdef" output { name: "y" data_type: TYPE_FP32 dims: 2 }'
)
with serve("models") as client:
    (out,) = client.infer(x=[1, 2]).values()
    assert out.tolist() == [2, 4], out
"""

SERVES_A_NET = """
from pathlib import Path
from naiad.testing import serve

Path("models/double/1").mkdir(parents=True)
Path("models/double/1/model.netdef").write_text(
    'op { input: "x" input: "x" output: "y" type: "Add" } external_input: "x" external_output: "y"'
)
Path("models/double/1/init_model.netdef").write_text("")
Path("models/double/config.pbtxt").write_text('input { name: "x" data_type: TYPE_FP32 dims: 2 }')
with serve("models") as client:
    (out,) = client.infer(x=[1, 2]).values()
    assert out.tolist() == [2, 4], out
"""

SCHEDULES = """
from naiad._kernel.plugins import PluginRegistry
from naiad.config import ModelConfig
from naiad.config.text import parse_text
from naiad.scheduler import Ticket

config = parse_text("max_batch_size: 4 dynamic_batching {}")
scheduler = PluginRegistry.discover().scheduler("dynamic_batching").create(config, 1)
for id in range(4):
    scheduler.arrive(Ticket(id, 0.0))
(dispatch,) = scheduler.decide(0.0, [0]).dispatches
assert dispatch.tickets == (0, 1, 2, 3), dispatch
"""

COMPOSES = """
from naiad._kernel.plugins import PluginRegistry
from naiad.config.text import parse_text

tensors = 'input { name: "x" data_type: TYPE_FP32 dims: 1 } output { name: "y" data_type: TYPE_FP32 dims: 1 }'
step = 'step { model_name: "m" input_map { key: "x" value: "x" } output_map { key: "y" value: "y" } }'
config = parse_text('name: "e" platform: "ensemble" ' + tensors + ' ensemble_scheduling { ' + step + ' }')
ensemble = PluginRegistry.discover().scheduler("ensemble_scheduling").compose(config, [parse_text(tensors)])
(start,) = ensemble.run({"x": 1}, ()).begin().starts
assert start.inputs == {"x": 1}, start
"""

SCHEDULES_SEQUENCES = """
from naiad._kernel.plugins import PluginRegistry
from naiad.config.text import parse_text
from naiad.scheduler import Row, Ticket

config = parse_text("max_batch_size: 4 sequence_batching {}")
scheduler = PluginRegistry.discover().scheduler("sequence_batching").create(config, 1)
scheduler.arrive(Ticket(1, 0.0, sequence_id=7, sequence_start=True))
(dispatch,) = scheduler.decide(0.0, [0]).dispatches
assert dispatch.rows == (Row(1, 1, start=True),), dispatch
"""

KEEPS = """
from naiad._kernel.plugins import PluginRegistry
from naiad.testing.caches import check_cache

check_cache(lambda: PluginRegistry.discover().cache("local").open({"size": "1000000"}))
"""

ASKS_REDIS = """
import logging
import threading
from naiad._kernel.plugins import PluginRegistry

logging.disable()  # nobody listens there
cache = PluginRegistry.discover().cache("redis").open({"host": "127.0.0.1", "port": "1"})
answered, answers = threading.Event(), []
cache.lookup(b"key", lambda found: (answers.append(found), answered.set()))
assert answered.wait(20)
cache.close()
assert answers == [None], answers
"""

BUILDS_AN_ENGINE = """
import logging
import pathlib
import tensorrt_rtx_bindings as trt
from naiad.errors import NaiadError
from naiad.testing import serve

logging.disable()  # the refusal is told twice
folder = pathlib.Path("engines", "double", "1")
folder.mkdir(parents=True)
builder = trt.Builder(trt.Logger(trt.Logger.ERROR))
network = builder.create_network(0)
x = network.add_input("x", trt.float32, (2,))
y = network.add_elementwise(x, x, trt.ElementWiseOperation.SUM).get_output(0)
network.mark_output(y)
(folder / "model.plan").write_bytes(builder.build_serialized_network(network, builder.create_builder_config()))
try:
    with serve("engines") as client:
        (out,) = client.infer(x=[1, 2]).values()
        assert out.tolist() == [2, 4], out
except NaiadError as error:
    assert "needs an NVIDIA GPU, and CUDA finds none" in str(error), error
"""

PROOFS = {
    "naiad-cache-local": KEEPS,
    "naiad-cache-redis": ASKS_REDIS,
    "naiad-caffe2": SERVES_A_NET,
    "naiad-custom": SERVES_A_FUNCTION,
    "naiad-onnx": SERVES_ONNX,
    "naiad-openvino": READS_ONNX,
    "naiad-scheduler-dynamic": SCHEDULES,
    "naiad-scheduler-ensemble": COMPOSES,
    "naiad-scheduler-sequence": SCHEDULES_SEQUENCES,
    "naiad-tensorflow": SERVES_A_GRAPH,
    "naiad-tensorrt": BUILDS_AN_ENGINE,
    "naiad-torch": SERVES_A_MODULE,
}
GREETINGS = ("WARNING: All log messages before absl", "I0000 ")
"""What TensorFlow writes when it is imported, past every log."""

FRAMEWORKS = {
    "naiad-caffe2": "cpu",
    "naiad-onnx": "cpu",
    "naiad-openvino": "cpu",
    "naiad-tensorflow": "cpu",
    "naiad-tensorrt": "rtx",
    "naiad-torch": "cpu",
}
"""The extra that brings the framework of each plugin that has one."""


@pytest.fixture(scope="module")
def wheels(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """The wheel of each member by the name of its distribution."""
    folder = tmp_path_factory.mktemp("wheels")
    members = [str(ROOT / member) for member in MEMBERS]
    subprocess.run([*PIP, "wheel", "-q", "--no-deps", "--no-build-isolation", "-w", folder, *members], check=True)
    return {path.name.split("-")[0].replace("_", "-"): path for path in folder.glob("*.whl")}


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """A model repository with the ONNX model `double`, FP32[2] to FP32[2]."""
    folder = tmp_path / "repository"
    (folder / "double" / "1").mkdir(parents=True)
    tensor = onnx.TensorProto.FLOAT
    graph = onnx.helper.make_graph(
        [onnx.helper.make_node("Add", ["x", "x"], ["y"])],
        "double",
        [onnx.helper.make_tensor_value_info("x", tensor, [2])],
        [onnx.helper.make_tensor_value_info("y", tensor, [2])],
    )
    model = onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 17)], ir_version=9)
    onnx.save(model, folder / "double" / "1" / "model.onnx")
    return folder


def environment(folder: Path, wheels: Iterable[Path], extras: Iterable[str]) -> Path:
    """The Python of a new environment with these wheels and what they need."""
    python = empty(folder)
    (packages,) = folder.glob("lib/python*/site-packages")
    subprocess.run([*PIP, "--python", python, "install", "-q", "--no-index", "--no-deps", *wheels], check=True)
    for wheel in metadata.distributions(path=[str(packages)]):
        for distribution in needed(wheel.requires or (), extras):
            link(distribution, packages)
    subprocess.run([*PIP, "--python", python, "check"], check=True)
    return python


@pytest.mark.parametrize("distribution", sorted(PROOFS))
def test_a_plugin_works_alone_beside_the_kernel(
    distribution: str, wheels: dict[str, Path], repository: Path, tmp_path: Path
) -> None:
    extras = [FRAMEWORKS[distribution]] if distribution in FRAMEWORKS else []

    python = environment(tmp_path / "venv", [wheels["naiad"], wheels[distribution]], extras)
    plugins = subprocess.run([python.parent / "naiad", "plugins"], capture_output=True, text=True, check=True)
    proof = subprocess.run(
        [python, "-c", PROOFS[distribution], str(repository)], capture_output=True, text=True, check=False, cwd=tmp_path
    )

    complaints = [line for line in proof.stderr.splitlines() if not line.startswith(GREETINGS)]
    assert (proof.returncode, complaints) == (0, [])
    assert {line.split("\t")[1] for line in plugins.stdout.splitlines()[1:]} == {
        "naiad 0.1.0",
        f"{distribution} 0.1.0",
    }
    assert "skipped" not in plugins.stdout


def test_the_http_frontend_works_alone_beside_the_kernel(
    serve: "Callable[..., ServerProcess]", wheels: dict[str, Path], tmp_path: Path
) -> None:
    python = environment(tmp_path / "venv", [wheels["naiad"], wheels["naiad-http"]], [])

    server = serve(tmp_path, "--model-control-mode=explicit", naiad=python.with_name("naiad"), frontends=["http"])

    with urllib.request.urlopen(f"{server.url}/v2/health/ready") as answer:
        assert answer.status == 200


def test_the_grpc_frontend_works_alone_beside_the_kernel(
    serve: "Callable[..., ServerProcess]", wheels: dict[str, Path], tmp_path: Path
) -> None:
    python = environment(tmp_path / "venv", [wheels["naiad"], wheels["naiad-grpc"]], [])

    server = serve(tmp_path, "--model-control-mode=explicit", naiad=python.with_name("naiad"), frontends=["grpc"])
    target = server.wait_for(r"grpc frontend listens at grpc://(\S+:\d+)").group(1)

    with triton.InferenceServerClient(target) as client:
        assert client.is_server_ready()


def test_the_metrics_frontend_works_alone_beside_the_kernel(
    serve: "Callable[..., ServerProcess]", wheels: dict[str, Path], tmp_path: Path
) -> None:
    python = environment(tmp_path / "venv", [wheels["naiad"], wheels["naiad-metrics"]], [])

    server = serve(tmp_path, "--model-control-mode=explicit", naiad=python.with_name("naiad"), frontends=["metrics"])
    url = server.wait_for(r"metrics frontend listens at (http://[^\s\"]+)").group(1)

    with urllib.request.urlopen(url) as answer:
        assert b"nv_cpu_utilization" in answer.read()


def test_the_kernel_works_alone(wheels: dict[str, Path], tmp_path: Path) -> None:
    python = environment(tmp_path / "venv", [wheels["naiad"]], [])

    answer = subprocess.run(
        [python.parent / "naiad", "serve", "--http-port=1", tmp_path], capture_output=True, text=True, check=False
    )

    assert answer.returncode == 1
    assert answer.stderr == (
        "naiad serve: unknown option --http-port. It comes with naiad-http: pip install 'naiad-http'.\n"
    )
