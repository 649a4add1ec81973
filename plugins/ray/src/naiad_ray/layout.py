"""Layout of an application on Ray Serve: with a front desk or without, and the requests in flight of replicas."""

from collections.abc import Mapping
from dataclasses import dataclass

from naiad_config import ModelConfig
from naiad_ray.capacity import has_sequences, most_ongoing_requests
from naiad_ray.description import Description, Scaled


@dataclass(frozen=True, slots=True)
class Layout:
    """The decisions about an application: whether it has a front desk, and the requests in flight of replicas.

    `ongoing` is what a replica of each group takes, and `ongoing_of_front_desk` what a front desk takes if the
    description does not say: twice as many as all replicas of all groups, since one front desk may serve all clients.
    """

    front_desk: bool
    ongoing: dict[str, int]
    ongoing_of_front_desk: int


def layout(description: Description, models: Mapping[str, Mapping[str, ModelConfig | str]]) -> Layout:
    """How an application is laid out for the models of each group.

    One group needs no front desk, unless it may have several replicas and models with sequences: the proxies of
    Ray Serve would send their requests to any replica.
    """
    ongoing = {
        group.name: group.max_ongoing_requests or most_ongoing_requests(models[group.name])
        for group in description.groups
    }
    several = len(description.groups) > 1
    scattered = any(most_replicas(group) > 1 and has_sequences(models[group.name]) for group in description.groups)
    in_groups = sum(ongoing[group.name] * most_replicas(group) for group in description.groups)
    return Layout(several or scattered or description.front_desk is not None, ongoing, 2 * in_groups)


def most_replicas(scaled: Scaled) -> int:
    """The most replicas that may run."""
    return scaled.autoscale.maximum if scaled.autoscale else scaled.replicas or 1
