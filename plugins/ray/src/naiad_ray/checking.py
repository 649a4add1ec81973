"""Output of `naiad ray check`: the groups of a description with their models, resources and problems."""

from collections.abc import Mapping
from fnmatch import fnmatchcase

from naiad_config import ModelConfig
from naiad_ray.description import FRONT_DESK, Description, Scaled
from naiad_ray.layout import layout

_Models = Mapping[str, ModelConfig | str]


def lines_of(description: Description, models: Mapping[str, _Models]) -> tuple[list[str], bool]:
    """The lines of the report, and whether any model cannot be read, or a pattern has no model."""
    laid_out = layout(description, models)
    front = _front_desk(description) if laid_out.front_desk else "the replicas of its group"
    lines = [f"application {description.name}: {description.ingress}, then {front}"]
    broken = False
    for group in description.groups:
        own = models[group.name]
        ongoing = laid_out.ongoing[group.name]
        lines.append(f"group {group.name}: {_scale(group)}, {_resources(group)}, {ongoing} requests in flight each")
        for name, config in own.items():
            problem = config if isinstance(config, str) else ""
            broken = broken or bool(problem)
            lines.append(f"  {name}: {problem or 'ok'}")
        missing = [pattern for pattern in group.models if not any(fnmatchcase(name, pattern) for name in own)]
        broken = broken or bool(missing)
        lines += [f"  {pattern}: no model of the repository has that name" for pattern in missing]
    return lines, broken


def _front_desk(description: Description) -> str:
    desk = description.front_desk or FRONT_DESK
    return f"a front desk of {_scale(desk)}, {_resources(desk)}"


def _scale(scaled: Scaled) -> str:
    if scaled.autoscale is None:
        count = scaled.replicas or 1
        return f"{count} replica" + "s" * (count != 1)
    scale = scaled.autoscale
    noun = "queued requests" if scale.by == "queue" else "requests in flight"
    return f"{scale.minimum} to {scale.maximum} replicas for {scale.target:g} {noun} each"


def _resources(group: Scaled) -> str:
    labels = "".join(f", {name}={value}" for name, value in group.labels.items())
    return f"{group.num_cpus:g} CPUs and {group.num_gpus:g} GPUs each{labels}"
