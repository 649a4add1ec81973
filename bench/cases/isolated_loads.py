"""Loads of models in processes of their own: what they leave behind, and what other models notice of a large one."""

import http.client
import json
import shutil
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from cases.case import Case
from load import LoadError
from report import Goal, Row
from rounds import MODELS, Run
from servers import WORK, Naiad, Running

_MODELS = 25
"""Different models, which are loaded in turn."""
_WIDTH = 16384
"""The weights of the large model are a square matrix of so many rows of FP32: 2^30 bytes."""
_SMALL = json.dumps(
    {"inputs": [{"name": f"INPUT{n}", "datatype": "FP32", "shape": [1, 16], "data": [1.0] * 16} for n in (0, 1)]}
)
_MEGABYTES = "memory of all processes, MB: {} loads and unloads later, and before"


def measure(run: Run) -> Sequence[Row]:
    return [*_what_stays(20 if run.quick else 500), *_what_others_notice(2.0 if run.quick else 10.0, run.rounds)]


def _what_stays(rounds: int) -> Iterator[Row]:
    """Memory, threads, descriptors and processes before and after so many loads and unloads."""
    with _serving(_small_models(WORK / "isolated_loads"), "process") as running:
        _load_in_turn(running, _MODELS)
        before = _held(running)
        _load_in_turn(running, rounds)
        after = _held(running)
    yield Row(_MEGABYTES.format(rounds), (after[0],), (before[0],), Goal(most=1.1, of_ratio=True))
    for label, now, then in zip(("threads", "descriptors", "processes"), after[1:], before[1:], strict=True):
        yield Row(f"{label} left over", (now - then,), (), Goal(most=0))


def _what_others_notice(seconds: float, rounds: int) -> Iterator[Row]:
    """The latency of a small model on a thread of the server while a large one loads, and while nothing does."""
    repository = _large_model(WORK / "isolated_load")
    for isolation, goal in (("process", Goal(most=2, of_ratio=True)), ("thread", None)):
        idle, loading = [], []
        for _ in range(rounds):
            with _serving(repository, isolation) as running:
                idle.append(_high_latency(running, seconds))
                loading.append(_high_latency(running, seconds, "large"))
        where = "isolated" if isolation == "process" else "in the server"
        yield Row(f"p99.9 of a small model while 1 GB loads {where}, and idle, ms", tuple(loading), tuple(idle), goal)


@contextmanager
def _serving(repository: Path, isolation: str) -> Iterator[Running]:
    options = ("--model-control-mode=explicit", "--load-model=add_sub", f"--isolation={isolation}")
    with Naiad().serve(repository, *options) as running:
        yield running


def _small_models(repository: Path) -> Path:
    for name in ("add_sub", *(f"model_{number}" for number in range(_MODELS))):
        shutil.copytree(MODELS / "add_sub", repository / name, dirs_exist_ok=True)
        config = (MODELS / "add_sub" / "config.pbtxt").read_text().replace('"add_sub"', f'"{name}"')
        (repository / name / "config.pbtxt").write_text(config)
    return repository


def _large_model(repository: Path) -> Path:
    """A repository with the small model on a thread, and `large`, a product with 1 GB of weights."""
    shutil.copytree(MODELS / "add_sub", repository / "add_sub", dirs_exist_ok=True)
    config = (MODELS / "add_sub" / "config.pbtxt").read_text()
    isolation = 'parameters { key: "isolation" value { string_value: "thread" } }'
    (repository / "add_sub" / "config.pbtxt").write_text(f"{config}\n{isolation}\n")
    path = repository / "large" / "1" / "model.onnx"
    if path.exists():
        return repository
    import numpy as np
    import onnx
    from onnx import TensorProto, helper, numpy_helper

    path.parent.mkdir(parents=True, exist_ok=True)
    weights = numpy_helper.from_array(np.random.default_rng(1).random((_WIDTH, _WIDTH), np.float32), "W")
    ends = [helper.make_tensor_value_info(name, TensorProto.FLOAT, ["batch", _WIDTH]) for name in ("X", "Y")]
    graph = helper.make_graph([helper.make_node("MatMul", ["X", "W"], ["Y"])], "large", ends[:1], ends[1:], [weights])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), path)
    (repository / "large" / "config.pbtxt").write_text('backend: "onnxruntime" max_batch_size: 8\n')
    return repository


def _load_in_turn(running: Running, rounds: int) -> None:
    with _connection(running) as connection:
        for number in range(rounds):
            name = f"model_{number % _MODELS}"
            _post(connection, f"/v2/repository/models/{name}/load")
            _post(connection, f"/v2/models/{name}/infer", _SMALL)
            _post(connection, f"/v2/repository/models/{name}/unload")


def _held(running: Running) -> tuple[float, int, int, int]:
    """Memory (MB), threads, descriptors and processes once they have not changed for a second."""
    seen: tuple[int, int, int] | None = None
    for _ in range(30):
        now = (running.threads(), running.descriptors(), running.processes())
        if now == seen:
            return running.resident_megabytes(), *now
        seen = now
        time.sleep(1)
    raise LoadError("the server's processes do not come to rest")


def _high_latency(running: Running, seconds: float, load: str = "") -> float:
    """The 99.9th percentile (ms) of the small model's latency, with one request in each millisecond at most.

    Measured for so long, or with `load` while that model loads (again and again until the time is over).
    """
    over = threading.Event()

    def loads() -> None:
        began = time.monotonic()
        with _connection(running) as connection:
            while time.monotonic() < began + seconds:
                _post(connection, f"/v2/repository/models/{load}/load")
                _post(connection, f"/v2/repository/models/{load}/unload")
        over.set()

    loader = threading.Thread(target=loads if load else lambda: over.wait(seconds) or over.set())
    latencies = []
    with _connection(running) as connection:
        for _ in range(200):
            _post(connection, "/v2/models/add_sub/infer", _SMALL)
        loader.start()
        while not over.is_set():
            began = time.perf_counter()
            _post(connection, "/v2/models/add_sub/infer", _SMALL)
            latencies.append(time.perf_counter() - began)
            time.sleep(max(0.0, began + 1e-3 - time.perf_counter()))
    loader.join()
    return sorted(latencies)[int(len(latencies) * 0.999)] * 1e3


@contextmanager
def _connection(running: Running) -> Iterator[http.client.HTTPConnection]:
    connection = http.client.HTTPConnection("127.0.0.1", running.port, timeout=120)
    try:
        yield connection
    finally:
        connection.close()


def _post(connection: http.client.HTTPConnection, path: str, body: str = "{}") -> None:
    connection.request("POST", path, body)
    answer = connection.getresponse()
    content = answer.read()
    if answer.status != http.client.OK:
        raise LoadError(f"{path} was answered with {answer.status}: {content[:500]!r}")


CASE = Case(
    "isolated_loads",
    "Loads of models in processes of their own",
    f"{_MODELS} different Python models are loaded, answer one request and are unloaded in turn, 500 times, after one "
    "turn of all: what is left over. Then a model of 1 GB for ONNX Runtime is loaded and unloaded again and again, in "
    "a process of its own and in the server: the latency of a small model on a thread of the server, which gets a "
    "request each millisecond at most.",
    measure,
    reference="before",
)
