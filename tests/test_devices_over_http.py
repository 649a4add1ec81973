"""Models on a device that there is not, behind the real frontend and schedulers: what clients ask for comes once."""

import json
import logging
import re
import urllib.request
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from multiprocessing.shared_memory import SharedMemory
from pathlib import Path
from threading import Barrier, Thread
from typing import Any

import numpy as np
import pytest

import naiad_explain
import naiad_http
import naiad_scheduler_dynamic
import naiad_scheduler_ensemble
import naiad_shared_memory
from naiad.backend import Answer, Backend, BackendTraits, Batch, ModelContext, Placement
from naiad.hookspecs import hookimpl
from naiad_config import ModelConfig
from naiad_tensors.devices import gpu
from naiad_testing.devices import FakeDeviceArray
from naiad_testing.serving import serve

GPU = gpu(0)
MODEL = """backend: "device" max_batch_size: 8
dynamic_batching { max_queue_delay_microseconds: 5000000 preferred_batch_size: [ 4 ] }
input { name: "x" data_type: TYPE_FP32 dims: 3 } output { name: "y" data_type: TYPE_FP32 dims: 3 }
"""
ENSEMBLE = """platform: "ensemble" max_batch_size: 8
input { name: "A" data_type: TYPE_FP32 dims: 3 } output { name: "C" data_type: TYPE_FP32 dims: 3 }
ensemble_scheduling {
  step { model_name: "first" model_version: -1 input_map { key: "x" value: "A" } output_map { key: "y" value: "B" } }
  step { model_name: "second" model_version: -1 input_map { key: "x" value: "B" } output_map { key: "y" value: "C" } }
}
"""


@dataclass(eq=False)
class Doubling:
    """A backend, model and instance in one, on the device; `made` are its answers and `stayed` its batches there."""

    traits: BackendTraits = field(default_factory=lambda: BackendTraits(name="device"))
    input_devices: Sequence[tuple[int, int]] = (GPU,)
    answers: list[FakeDeviceArray] = field(default_factory=list)
    stayed: list[int] = field(default_factory=list)

    @hookimpl
    def naiad_backends(self) -> Sequence[Backend]:
        return [self]

    def complete(self, context: ModelContext) -> ModelConfig:
        return context.config

    def load(self, context: ModelContext) -> Any:
        return self

    def instantiate(self, placement: Placement) -> Any:
        return self

    def execute(self, batch: Batch) -> Answer:
        resident = batch.resident("x", self.input_devices)
        if resident is None:
            array = batch.input("x")
        else:
            self.stayed.append(len(resident))
            array = np.concatenate([FakeDeviceArray.over(each).memory for each in resident])
        self.answers.append(FakeDeviceArray(array * 2))
        return {"y": self.answers[-1]}

    def close(self) -> None:
        return None


@pytest.fixture
def doubling() -> Doubling:
    return Doubling()


@pytest.fixture
def url(doubling: Doubling, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> Iterator[str]:
    """Where a server of two such models and their ensemble listens."""
    for name, config in (("first", MODEL), ("second", MODEL), ("both", ENSEMBLE)):
        (tmp_path / "models" / name / "1").mkdir(parents=True)
        (tmp_path / "models" / name / "config.pbtxt").write_text(config)
    schedulers = [naiad_scheduler_dynamic, naiad_scheduler_ensemble]
    plugins = [doubling, naiad_explain, naiad_http, *schedulers, naiad_shared_memory]
    options = {"http-port": 0, "allow-client-shm": True, "allow-explain": True}
    with caplog.at_level(logging.INFO, "naiad"), serve(tmp_path / "models", plugins=plugins, options=options):
        match = re.search(r"http frontend listens at \S+:(\d+)", caplog.text)
        assert match is not None
        yield f"http://127.0.0.1:{match.group(1)}/v2"


def post(address: str, document: Any) -> Any:
    request = urllib.request.Request(address, json.dumps(document).encode(), {"Content-Type": "application/json"})
    with urllib.request.urlopen(request, timeout=30) as response:
        body = response.read()
    return json.loads(body) if body else None


def request_for(name: str, rows: list[list[float]], **output: Any) -> dict[str, Any]:
    tensor = {"name": name, "datatype": "FP32", "shape": [len(rows), 3], "data": rows}
    return {"inputs": [tensor], "outputs": [{"name": "C", **output}]}


ROWS = [[1.0, 2.0, 3.0], [4.0, 6.0, 5.0], [0.0, 0.0, 1.0], [9.0, 8.0, 7.0]]


def test_a_client_gets_what_went_through_the_device(url: str, doubling: Doubling) -> None:
    answer = post(f"{url}/models/both/infer", request_for("A", ROWS))

    assert answer["outputs"][0]["data"] == [4 * each for row in ROWS for each in row]
    assert [item.copies for item in doubling.answers] == [0, 1]


def test_requests_of_one_batch_are_joined_and_split_on_the_device(url: str, doubling: Doubling) -> None:
    answers: dict[int, Any] = {}
    together = Barrier(2)

    def ask(index: int) -> None:
        together.wait()
        answers[index] = post(f"{url}/models/both/infer", request_for("A", ROWS[2 * index : 2 * index + 2]))

    threads = [Thread(target=ask, args=(index,)) for index in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    outputs = [answers[index]["outputs"][0]["data"] for index in range(2)]
    assert outputs == [[4 * each for row in ROWS[2 * index : 2 * index + 2] for each in row] for index in range(2)]
    assert doubling.stayed == [2]
    assert [item.copies for item in doubling.answers] == [0, 1]


def test_classes_are_read_from_the_host(url: str, doubling: Doubling) -> None:
    answer = post(f"{url}/models/both/infer", request_for("A", ROWS, parameters={"classification": 1}))

    assert [text.split(":")[1] for text in answer["outputs"][0]["data"]] == ["2", "1", "2", "0"]
    assert [each.copies for each in doubling.answers] == [0, 1]


def test_outputs_go_to_shared_memory(url: str, doubling: Doubling) -> None:
    segment = SharedMemory(create=True, size=48)
    try:
        post(f"{url}/systemsharedmemory/region/out/register", {"key": f"/{segment.name}", "offset": 0, "byte_size": 48})
        target = {"shared_memory_region": "out", "shared_memory_byte_size": 48}
        post(f"{url}/models/both/infer", request_for("A", ROWS, parameters=target))
        written = np.frombuffer(bytes(segment.buf[:48]), np.float32)
    finally:
        segment.close()
        segment.unlink()

    assert written.tolist() == [4 * each for row in ROWS for each in row]
    assert [item.copies for item in doubling.answers] == [0, 1]


def test_an_explanation_does_not_take_it_off_the_device(url: str, doubling: Doubling) -> None:
    answer = post(f"{url}/models/both/infer", {**request_for("A", ROWS), "parameters": {"naiad_explain": True}})

    assert "naiad_explain" in answer["parameters"]
    assert [each.copies for each in doubling.answers] == [0, 1]
