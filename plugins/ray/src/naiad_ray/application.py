"""The application for Ray Serve from a description: the control plane, the groups, and a front desk if needed."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ray import serve
from ray.serve import Application
from ray.serve.config import AutoscalingConfig, AutoscalingPolicy, RequestRouterConfig

from naiad.errors import InvalidArgumentError
from naiad_ray.capacity import LEAST_ONGOING_REQUESTS, configurations, digest, has_sequences, most_ongoing_requests
from naiad_ray.control import ControlPlane
from naiad_ray.description import Autoscale, Description, Group, Scaled
from naiad_ray.front_desk import FrontDesk
from naiad_ray.reading import read_description
from naiad_ray.replica import Replica, ReplicaPlan, SoloReplica

_MOST_POLLS = 100_000


def app(args: dict[str, str]) -> Application:
    """The application for `serve run naiad_ray:app config=FILE` or `repository=DIR`.

    Raises InvalidArgumentError for other arguments and for a file with mistakes.
    """
    path = args.get("config") or args.get("repository")
    if path is None or len(args) > 1:
        raise InvalidArgumentError("write serve run naiad_ray:app config=naiad-ray.yaml, or repository=DIR")
    return build(read_description(Path(path)))


@dataclass(frozen=True, slots=True)
class Layout:
    """The decisions about an application: whether it has a front desk, and each group's requests in flight."""

    front_desk: bool
    ongoing: dict[str, int]


def layout(description: Description) -> Layout:
    """How an application is laid out. Raises NotFoundError for a repository that cannot be read.

    One group needs no front desk, unless it may have several replicas and models with sequences: the proxies of
    Ray Serve would send their requests to any replica.
    """
    models = {group.name: configurations(description, group) for group in description.groups}
    ongoing = {
        group.name: group.max_ongoing_requests or max(LEAST_ONGOING_REQUESTS, most_ongoing_requests(models[group.name]))
        for group in description.groups
    }
    several = len(description.groups) > 1
    scattered = any(most_replicas(group) > 1 and has_sequences(models[group.name]) for group in description.groups)
    return Layout(several or scattered or description.front_desk is not None, ongoing)


def most_replicas(scaled: Scaled) -> int:
    """The most replicas that may run."""
    return scaled.autoscale.maximum if scaled.autoscale else scaled.replicas or 1


def build(description: Description) -> Application:
    """The application. Raises NaiadError for a repository that cannot be read."""
    laid_out = layout(description)
    control = (
        serve.deployment(ControlPlane)
        .options(
            name="control-plane",
            max_ongoing_requests=_MOST_POLLS,
            ray_actor_options={"num_cpus": 0},
            health_check_period_s=description.health_seconds,
            graceful_shutdown_timeout_s=5.0,
        )
        .bind()
    )
    groups = {
        group.name: serve.deployment(Replica if laid_out.front_desk else SoloReplica)
        .options(
            name=group.name,
            request_router_config=RequestRouterConfig(request_router_class="naiad_ray.routing.SequenceRouter")
            if laid_out.front_desk
            else RequestRouterConfig(),
            **_options(description, group, laid_out.ongoing[group.name]),
        )
        .bind(_plan(description, group), control)
        for group in description.groups
    }
    if not laid_out.front_desk:
        (only,) = groups.values()
        return only
    desk = description.front_desk or Scaled(num_cpus=0.5)
    ongoing = desk.max_ongoing_requests or sum(laid_out.ongoing.values()) * 2
    options = _options(description, desk, ongoing)
    return serve.deployment(FrontDesk).options(name="front-desk", **options).bind(description, control, groups)


def _plan(description: Description, group: Group) -> ReplicaPlan:
    repository = description.repository_of(group)
    several = len(description.groups) > 1 or bool(group.models)
    other = tuple(pattern for each in description.groups if each is not group for pattern in each.models)
    return ReplicaPlan(
        group.name,
        repository,
        description.options | group.options,
        group.models if several else None,
        other,
        digest(repository),
    )


def _options(description: Description, scaled: Scaled, ongoing: int) -> dict[str, Any]:
    """The options of a deployment with replicas."""
    actor: dict[str, Any] = {"num_cpus": scaled.num_cpus, "num_gpus": scaled.num_gpus}
    if scaled.labels:
        actor["label_selector"] = dict(scaled.labels)
    options: dict[str, Any] = {
        "max_ongoing_requests": ongoing,
        "ray_actor_options": actor,
        "health_check_period_s": description.health_seconds,
        "health_check_timeout_s": max(10.0, 3 * description.health_seconds),
        "graceful_shutdown_timeout_s": description.drain_seconds,
        "graceful_shutdown_wait_loop_s": 0.5,
    }
    if scaled.autoscale is None:
        options["num_replicas"] = scaled.replicas or 1
    else:
        options["autoscaling_config"] = _autoscaling(scaled.autoscale)
    return options


def _autoscaling(autoscale: Autoscale) -> AutoscalingConfig:
    options: dict[str, Any] = {}
    if autoscale.by == "queue":
        options["policy"] = AutoscalingPolicy(
            policy_function="naiad_ray.scaling:ByQueue", policy_kwargs={"target": autoscale.target}
        )
    return AutoscalingConfig(
        min_replicas=autoscale.minimum,
        max_replicas=autoscale.maximum,
        target_ongoing_requests=autoscale.target,
        metrics_interval_s=autoscale.interval,
        look_back_period_s=autoscale.look_back,
        upscale_delay_s=autoscale.up_after,
        downscale_delay_s=autoscale.down_after,
        **options,
    )
