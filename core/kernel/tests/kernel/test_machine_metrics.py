"""The metrics of the machine and of its GPUs, and what models execute on which of them."""

from pathlib import Path

import pytest

from naiad_testing.backends import FakeBackend
from naiad_testing.in_loop import request, write_model
from naiad_testing.metric_values import ONE, values_of, with_reason
from naiad_testing.steered import Steered

from .metered import running


async def test_the_machine_is_reported_unless_that_is_switched_off(tmp_path: Path, backend: FakeBackend) -> None:
    cpu = {"nv_cpu_utilization", "nv_cpu_memory_total_bytes", "nv_cpu_memory_used_bytes"}
    always = {"nv_pinned_memory_pool_total_bytes", "nv_pinned_memory_pool_used_bytes", "naiad_process_memory_bytes"}

    async with running(tmp_path, backend) as server:
        on = values_of(server)
    async with running(tmp_path, backend, allow_cpu_metrics=False) as server:
        off = values_of(server)

    assert cpu | always <= set(on)
    assert set(on) - set(off) == cpu
    assert all(list(on[name]) == [frozenset()] for name in cpu)


async def test_what_is_executed_on_a_gpu_is_reported_by_gpu(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for module in ("service", "versions"):
        monkeypatch.setattr(f"naiad_metrics.{module}.gpu_uuids", lambda: ("GPU-a", "GPU-b"))
    monkeypatch.setattr("naiad_tensors.gpus.gpu_count", lambda: 2)
    backend = Steered()
    write_model(tmp_path, "m", FLOATS_ON_GPUS)

    async with running(tmp_path, backend) as server:
        await server.infer(request("m", 1))
        metrics = values_of(server)

    on = {uuid: ONE | {("gpu_uuid", uuid)} for uuid in ("GPU-a", "GPU-b")}
    counts = metrics["nv_inference_count"]
    assert (set(counts), sum(counts.values())) == (set(on.values()), 1)
    assert set(metrics["naiad_request_duration_seconds"]) == set(on.values())
    assert set(metrics["nv_inference_pending_request_count"]) == {ONE}
    instances = [dict(labels) for labels in metrics["naiad_instance_busy_seconds"]]
    assert [(labels["instance"], labels["gpu"]) for labels in instances] == [("m_0_0", "0"), ("m_0_0", "1")]
    assert with_reason("OTHER") in metrics["nv_inference_request_failure"]


FLOATS_ON_GPUS = """
input [ { name: "INPUT", data_type: TYPE_FP32, dims: [ -1 ] } ]
output [ { name: "OUTPUT", data_type: TYPE_FP32, dims: [ -1 ] } ]
instance_group [ { kind: KIND_GPU, gpus: [ 0, 1 ] } ]
"""
