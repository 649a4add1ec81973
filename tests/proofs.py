"""Programs that prove each plugin in an environment of its own; their argument is a repository with an ONNX model."""

SERVES_A_FUNCTION = """
import naiad_custom
from naiad_testing import serve

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
from naiad_testing import serve

with serve(sys.argv[1]) as client:
    (out,) = client.infer(x=[1, 2]).values()
    assert out.tolist() == [2, 4], out
"""

READS_ONNX = """
import sys
from pathlib import Path
from naiad_testing import serve

folder = Path(sys.argv[1]) / "double"
(folder / "config.pbtxt").write_text('backend: "openvino" default_model_filename: "model.onnx"')
with serve(sys.argv[1]) as client:
    (out,) = client.infer(x=[1, 2]).values()
    assert out.tolist() == [2, 4], out
"""

SERVES_A_MODULE = """
from pathlib import Path
from naiad_testing import serve

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
from naiad_testing import serve

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
from naiad_testing import serve

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
from naiad import PluginRegistry
from naiad_config import ModelConfig
from naiad_config.text import parse_text
from naiad.scheduler import Ticket

config = parse_text("max_batch_size: 4 dynamic_batching {}")
scheduler = PluginRegistry.discover().scheduler("dynamic_batching").create(config, 1)
for id in range(4):
    scheduler.arrive(Ticket(id, 0.0))
(dispatch,) = scheduler.decide(0.0, [0]).dispatches
assert dispatch.tickets == (0, 1, 2, 3), dispatch
"""

COMPOSES = """
from naiad import PluginRegistry
from naiad_config.text import parse_text
from naiad_scheduler_ensemble.composition import compose

tensors = 'input { name: "x" data_type: TYPE_FP32 dims: 1 } output { name: "y" data_type: TYPE_FP32 dims: 1 }'
step = 'step { model_name: "m" input_map { key: "x" value: "x" } output_map { key: "y" value: "y" } }'
config = parse_text('name: "e" platform: "ensemble" ' + tensors + ' ensemble_scheduling { ' + step + ' }')
assert PluginRegistry.discover().servable(config).name == "ensemble"
(start,) = compose(config, [parse_text(tensors)]).run({"x": 1}, ()).begin().starts
assert start.inputs == {"x": 1}, start
"""

SCHEDULES_SEQUENCES = """
from naiad import PluginRegistry
from naiad_config.text import parse_text
from naiad.scheduler import Ticket
from naiad_kit.sequences import Row

config = parse_text("max_batch_size: 4 sequence_batching {}")
scheduler = PluginRegistry.discover().scheduler("sequence_batching").create(config, 1)
scheduler.arrive(Ticket(1, 0.0, sequence_id=7, sequence_start=True))
(dispatch,) = scheduler.decide(0.0, [0]).dispatches
assert dispatch.rows == (Row(1, 1, start=True),), dispatch
"""

KEEPS = """
from naiad import PluginRegistry
from naiad_testing.caches import check_cache

check_cache(lambda: PluginRegistry.discover().cache("local").open({"size": "1000000"}))
"""

CACHES = """
import asyncio
from pathlib import Path
from naiad import Server
from naiad_cache.service import CacheService
from naiad_testing.caches import FakeCache
import naiad_cache

async def serve():
    Path("models").mkdir()
    plugins = [naiad_cache, FakeCache()]
    async with Server(model_repository=["models"], plugins=plugins, options={"cache-config": ("fake",)}) as server:
        return server.service(CacheService).metrics()

names = [family.name for family in asyncio.run(serve())]
assert "naiad_cache_lookups_total" in names, names
"""

ASKS_REDIS = """
import logging
import threading
from naiad import PluginRegistry

logging.disable()  # there is no collector
cache = PluginRegistry.discover().cache("redis").open({"host": "127.0.0.1", "port": "1"})
answered, answers = threading.Event(), []
cache.lookup(b"key", lambda found: (answers.append(found), answered.set()))
assert answered.wait(20)
cache.close()
assert answers == [None], answers
"""

RUNS_THE_LOOP = """
import asyncio
from naiad import PluginRegistry
from naiad.options import Settings

registry = PluginRegistry.discover()
settings = Settings(registry.options(), {})
with asyncio.Runner() as process:
    runner = registry.loop_runner(process.get_loop(), settings)
    kind, on_loop = registry.workers(settings, runner)
    assert on_loop.name == "event_loop", on_loop.name
    assert kind.name == "loop_handoff", kind.name
    assert runner.run(asyncio.sleep(0, "ran")) == "ran"
"""

ISOLATES = """
from pathlib import Path
from naiad import PluginRegistry
from naiad.backend import ModelContext
from naiad.options import Settings
from naiad_config.text import parse_text
from naiad_process_workers.process import Environment, Limits, ModelProcess

registry = PluginRegistry.discover()
(kind,) = registry.workers(Settings(registry.options(), {}), None)
assert kind.name == "process", kind.name
process = ModelProcess(ModelContext(parse_text('name: "m"'), 1, Path(), Path()), Environment.own(), Limits(startup=60))
process.close()
assert not Path(f"/proc/{process.pid}").exists()
"""

EXPLAINS = """
from pathlib import Path
from naiad import PluginRegistry
from naiad.backend import ModelContext
from naiad.extend import StageContext
from naiad.options import Settings
from naiad_config.text import parse_text

registry = PluginRegistry.discover()
context = ModelContext(parse_text('name: "m"'), 1, Path(), Path())
(stage,) = registry.stages(StageContext(context, Settings(registry.options(), {}), None, None, None))
assert stage.parameter == "explain", stage.parameter
"""

BUILDS_AN_ENGINE = """
import logging
import pathlib
import tensorrt_rtx_bindings as trt
from naiad.errors import NaiadError
from naiad_testing import serve

logging.disable()  # the refusal is logged and raised
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

TRACES = """
import asyncio
import json
from pathlib import Path
from naiad import Server
from naiad_kit.tracing import Tracing

async def trace():
    options = {"trace-config": ("rate=1", "level=TIMESTAMPS", "triton,file=trace.json")}
    Path("models").mkdir()
    async with Server(model_repository=["models"], options=options) as server:
        server.service(Tracing).sample("m", 1, "7").end()

asyncio.run(trace())
assert [each["model_name"] for each in json.loads(Path("trace.json").read_text())] == ["m"]
"""

LIMITS = """
from naiad import PluginRegistry
from naiad.backend import Placement
from naiad.options import Settings
from naiad_config import ModelConfig, ModelInstanceGroup, ModelRateLimiter, RateLimiterResource

plugins = PluginRegistry.discover()
gates = plugins.gates(Settings(plugins.options(), {"rate-limit": "execution_count"}))
group = ModelInstanceGroup(rate_limiter=ModelRateLimiter(resources=(RateLimiterResource(name="R", count=1),)))
slots, granted = [Placement("a", "CPU", 0, group), Placement("b", "CPU", 0, group)], []
gate = gates.admit(ModelConfig(), slots)
gate.enter(slots)
for slot in (0, 1):
    gate.want(slot, granted.append)
gate.grant()
assert granted == [0], granted
gate.release(0)
gate.grant()
assert granted == [0, 1], granted
"""

CARRIES_CALLS = """
import asyncio
from naiad import Server
from naiad_config import ModelConfig
from naiad_kit.calls import ModelCallService
from naiad.errors import NotFoundError
from naiad.types import Request

async def call():
    async with Server(options={"model-control-mode": "explicit"}) as server:
        models = server.service(ModelCallService).part_of(ModelConfig(name="outer"))
        try:
            await asyncio.wrap_future(models.begin(Request("inner", {})))
        except NotFoundError as error:
            return str(error)

assert "unknown model: 'inner'" in asyncio.run(call())
"""

KEEPS_REGIONS = """
import asyncio
import os
import numpy as np
from naiad import Server
from naiad_kit.shared_memory import SharedInput, SharedMemoryApi

async def read():
    async with Server(options={"allow-client-shm": True}) as server:
        memory = server.service(SharedMemoryApi)
        memory.register_system("r", "/" + name, 4, 8)
        floats = np.dtype(np.float32)
        return memory.tensor(SharedInput("x", "FP32", (1,), floats, 1, "r", 4, 4), "m").array.tolist()

name = f"naiad_test_{os.getpid()}"
try:
    with open(f"/dev/shm/{name}", "wb") as segment:
        segment.write(np.array([1, 2, 3], np.float32).tobytes())
    values = asyncio.run(read())
finally:
    os.unlink(f"/dev/shm/{name}")
assert values == [3.0], values
"""

WARMS_UP = """
from pathlib import Path
from naiad import PluginRegistry
from naiad.backend import ModelContext
from naiad.types import Response
from naiad.warmup import VersionParts
from naiad_config.text import parse_text

value = "data_type: TYPE_FP32 dims: 2 zero_data: true"
sample = 'name: "m" model_warmup { name: "s" batch_size: 1 inputs { key: "x" value { ' + value + " } } }"
context = ModelContext(parse_text(sample), 1, Path(), Path())
(warmup,) = PluginRegistry.discover().warmup(context)
executed = []

class Instance:
    def execute(self, batch):
        executed.append(batch.input("x").tolist())
        return [Response("m", 1, "", {})]

warmup.warm_up(Instance(), "m_0", VersionParts(lambda request: (request, 1), lambda answer, batch: answer))
assert executed == [[0.0, 0.0]], executed
"""

PROOFS = {
    "naiad-cache": CACHES,
    "naiad-cache-local": KEEPS,
    "naiad-cache-redis": ASKS_REDIS,
    "naiad-caffe2": SERVES_A_NET,
    "naiad-custom": SERVES_A_FUNCTION,
    "naiad-explain": EXPLAINS,
    "naiad-loop-handoff": RUNS_THE_LOOP,
    "naiad-model-calls": CARRIES_CALLS,
    "naiad-onnx": SERVES_ONNX,
    "naiad-openvino": READS_ONNX,
    "naiad-process-workers": ISOLATES,
    "naiad-rate-limiter": LIMITS,
    "naiad-scheduler-dynamic": SCHEDULES,
    "naiad-scheduler-ensemble": COMPOSES,
    "naiad-scheduler-sequence": SCHEDULES_SEQUENCES,
    "naiad-shared-memory": KEEPS_REGIONS,
    "naiad-tensorflow": SERVES_A_GRAPH,
    "naiad-tensorrt": BUILDS_AN_ENGINE,
    "naiad-torch": SERVES_A_MODULE,
    "naiad-tracing": TRACES,
    "naiad-warmup": WARMS_UP,
}
"""The program that proves it, by the name of the distribution."""
