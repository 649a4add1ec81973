"""The application for Ray Serve from a description: the control plane, the groups, and a front desk if needed."""

from collections.abc import Mapping
from typing import Any

from ray import serve
from ray.serve import Application
from ray.serve.config import AutoscalingConfig, AutoscalingPolicy, RequestRouterConfig

from naiad.errors import InvalidArgumentError
from naiad_ray.capacity import configurations, digest
from naiad_ray.control import ControlPlane
from naiad_ray.description import FRONT_DESK, Autoscale, Description, Group, Scaled
from naiad_ray.front_desk import FrontDesk
from naiad_ray.layout import layout
from naiad_ray.reading import read_description
from naiad_ray.replica import Replica, ReplicaPlan, SoloReplica
from naiad_ray.versions import versioned

_MOST_POLLS = 100_000
SEQUENCE_ROUTER = "naiad_ray.routing.SequenceRouter"


def app(args: dict[str, str]) -> Application:
    """The application for `serve run naiad_ray:app config=FILE` or `repository=DIR`.

    Raises InvalidArgumentError for other arguments and for a file with mistakes.
    """
    path = args.get("config") or args.get("repository")
    if path is None or len(args) > 1:
        raise InvalidArgumentError("write serve run naiad_ray:app config=naiad-ray.yaml, or repository=DIR")
    return build(read_description(path))


def build(description: Description) -> Application:
    """The application. Raises NaiadError for a repository that cannot be read."""
    laid_out = layout(description, {group.name: configurations(description, group) for group in description.groups})
    control = _deployment(ControlPlane, "control-plane", _options_of_control(description)).bind()
    groups = {}
    for group in description.groups:
        plan, options = _plan(description, group), _options(description, group, laid_out.ongoing[group.name])
        if laid_out.front_desk:
            options["request_router_config"] = RequestRouterConfig(request_router_class=SEQUENCE_ROUTER)
        kind = Replica if laid_out.front_desk else SoloReplica
        groups[group.name] = _deployment(kind, group.name, options, plan, _reports_of(group)).bind(plan, control)
    if not laid_out.front_desk:
        (only,) = groups.values()
        return only
    desk = description.front_desk or FRONT_DESK
    ongoing = desk.max_ongoing_requests or laid_out.ongoing_of_front_desk
    options = _options(description, desk, ongoing)
    return _deployment(FrontDesk, "front-desk", options, description).bind(description, control, groups)


def _deployment(kind: type, name: str, options: Mapping[str, Any], *arguments: object) -> Any:
    """A deployment whose replicas an update keeps if the class and these arguments are the same."""
    return versioned(serve.deployment(kind).options(name=name, **options), kind.__qualname__, *arguments)


def _options_of_control(description: Description) -> dict[str, Any]:
    return {
        "max_ongoing_requests": _MOST_POLLS,
        "ray_actor_options": {"num_cpus": 0},
        "health_check_period_s": description.health_seconds,
        "graceful_shutdown_timeout_s": 5.0,
    }


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
        digest(description, group),
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
        "max_surge_percent": scaled.surge_percent,
    }
    if scaled.autoscale is None:
        options["num_replicas"] = scaled.replicas or 1
    else:
        options["autoscaling_config"] = _autoscaling(scaled.autoscale)
    return options


def _reports_of(scaled: Scaled) -> tuple[float, float] | None:
    """How replicas report their queues, None if they do not: Ray Serve takes it when a replica starts, not later."""
    scale = scaled.autoscale
    return None if scale is None or scale.by != "queue" else (scale.interval, scale.look_back)


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
