"""The memory of model processes as a metric: which series there are, and that none is left behind."""

from dataclasses import dataclass
from pathlib import Path

import pytest

from naiad import Server
from naiad.backend import ModelContext, Placement
from naiad_config import ModelConfig, ModelInstanceGroup
from naiad_kit.metrics import MetricFamily, metrics_of_plugins
from naiad_process_workers.resident_memory import ResidentMemoryService
from naiad_testing.loops import until

from .conftest import TENSORS, Serve, Write

NAME = "naiad_model_process_memory_bytes"
MEGABYTE = 1 << 20


@dataclass(eq=False)
class Process:
    """A process that is not there."""

    pid: int
    context: ModelContext
    has_ended: bool = False


def context_of(name: str, **tags: str) -> ModelContext:
    return ModelContext(ModelConfig(name=name, metric_tags=tags), 3, Path(), Path())


def sizes_of(families: list[MetricFamily]) -> dict[frozenset[tuple[str, str]], float]:
    """The values of the metric by their labels."""
    (family,) = [each for each in families if each.name == NAME]
    sizes = {frozenset(sample.labels): sample.value for sample in family.samples}
    assert len(sizes) == len(family.samples)
    return sizes  # type: ignore[return-value]


def sizes_in(server: Server) -> dict[frozenset[tuple[str, str]], float]:
    return sizes_of(metrics_of_plugins(server))


def labels(**values: str) -> frozenset[tuple[str, str]]:
    return frozenset(values.items())


def test_a_process_has_the_labels_of_its_model_and_its_instance() -> None:
    service = ResidentMemoryService({7: 70, 8: 80}.__getitem__)
    processes = [Process(pid, context_of("m", team="a-b")) for pid in (7, 8)]
    for process, placement in zip(
        processes,
        (Placement("m_0", "CPU", 0, ModelInstanceGroup()), Placement("m_0", "GPU", 1, ModelInstanceGroup())),
        strict=True,
    ):
        service.add(process, placement)

    assert sizes_of(service.metrics()) == {
        labels(model="m", version="3", _team="a-b", instance="m_0"): 70,
        labels(model="m", version="3", _team="a-b", instance="m_0", gpu="1"): 80,
    }


def test_processes_with_the_same_labels_are_added_up_and_ended_ones_are_not_read() -> None:
    service = ResidentMemoryService({7: 70, 8: 80}.__getitem__)
    placement = Placement("m_0", "CPU", 0, ModelInstanceGroup())
    processes = [Process(pid, context_of("m")) for pid in (7, 8, 9)]
    for process in processes:
        service.add(process, placement)
    processes[2].has_ended = True

    assert list(sizes_of(service.metrics()).values()) == [150]


def test_each_process_of_a_model_is_reported_and_nothing_after_it_is_unloaded(write: Write, served: Serve) -> None:
    model = write("m", config=TENSORS + "instance_group { count: 2 }")
    with served(model) as client:
        loaded = client.wait_for(_sizes)
        client.wait_for(lambda server: server.unload("m"))
        client.wait_for(lambda server: until(lambda: not sizes_in(server)))  # the processes end meanwhile
        client.wait_for(lambda server: server.load("m"))
        again = client.wait_for(_sizes)

    each = {labels(model="m", version="1", instance=name) for name in ("m_0_0", "m_0_1")}
    assert set(loaded) == set(again) == each
    assert all(5 * MEGABYTE < size < 2000 * MEGABYTE for size in loaded.values())


@pytest.mark.parametrize(("isolation", "expected"), [("model", {labels(model="m", version="1")}), ("thread", set())])
def test_a_process_of_all_instances_is_one_series_and_instances_on_threads_are_none(
    write: Write, served: Serve, isolation: str, expected: set[frozenset[tuple[str, str]]]
) -> None:
    with served(write("m", config=TENSORS + "instance_group { count: 2 }", isolation=isolation)) as client:
        assert set(client.wait_for(_sizes)) == expected


async def _sizes(server: Server) -> dict[frozenset[tuple[str, str]], float]:
    return sizes_in(server)
