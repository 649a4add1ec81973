"""The layout of an application: requests in flight, and whether there is a front desk."""

import pytest

from naiad_config import ModelConfig, ModelInstanceGroup, ModelSequenceBatching
from naiad_ray.description import Autoscale, Description, Group
from naiad_ray.layout import layout

ONE = {"g": {"m": ModelConfig(name="m", sequence_batching=ModelSequenceBatching())}}


@pytest.mark.parametrize(
    ("models", "own", "expected"),
    [
        ({}, None, 256),
        ({"m": "it cannot be read"}, None, 256),
        ({"m": ModelConfig(max_batch_size=8)}, None, 256),
        ({"m": ModelConfig(max_batch_size=200, instance_group=(ModelInstanceGroup(count=2),))}, None, 800),
        ({"m": ModelConfig(max_batch_size=200)}, 7, 7),
    ],
    ids=["no models", "no configuration", "small batches", "large batches", "configured"],
)
def test_a_replica_takes_as_many_requests_as_its_batches_need(models, own, expected) -> None:  # type: ignore[no-untyped-def]
    description = Description(repository=("r",), groups=(Group(name="g", max_ongoing_requests=own),))

    assert layout(description, {"g": models}).ongoing == {"g": expected}


@pytest.mark.parametrize(("replicas", "expected"), [(1, False), (2, True)])
def test_sequences_on_several_replicas_need_a_front_desk(replicas: int, expected: bool) -> None:
    description = Description(repository=("r",), groups=(Group(name="g", replicas=replicas),))

    assert layout(description, ONE).front_desk is expected


def test_a_front_desk_takes_twice_the_requests_of_all_replicas() -> None:
    grows = Group(name="h", models=("x",), autoscale=Autoscale(maximum=4), max_ongoing_requests=10)
    description = Description(repository=("r",), groups=(Group(name="g", replicas=3), grows))

    assert layout(description, ONE | {"h": {}}).ongoing_of_front_desk == 2 * (3 * 256 + 4 * 10)
