"""Rules for instance groups: devices, profiles and the resources of the rate limiter."""

from collections.abc import Iterator

from naiad_config.errors import Problem
from naiad_config.model import ModelConfig
from naiad_config.paths import element
from naiad_config.placement import InstanceKind, ModelInstanceGroup
from naiad_config.validation.tensors import may_be_tensorrt

MOST_INSTANCES = 1024
"""The largest `count` of a group: each instance has a thread, and a typing mistake must not ask for a million."""


def problems(config: ModelConfig) -> Iterator[Problem]:
    """What is wrong in the instance groups."""
    for index, group in enumerate(config.instance_group):
        path = element("instance_group", index)
        what = f"instance group {group.name or f'{config.name}_{index}'} of model {config.name}"
        if group.gpus and group.kind in (InstanceKind.KIND_CPU, InstanceKind.KIND_MODEL):
            message = f"{what} has kind {group.kind.name} but specifies one or more GPUs"
            yield Problem(message, f"{path}.gpus", hint="leave 'gpus' out, or use KIND_GPU")
        if group.count > MOST_INSTANCES:
            message = f"{what} has count {group.count}, and the most is {MOST_INSTANCES}"
            yield Problem(message, f"{path}.count", hint="one instance executes whole batches; start with few")
        yield from _profiles(config, group, what, path)
    yield from _resources(config)


def _profiles(config: ModelConfig, group: ModelInstanceGroup, what: str, path: str) -> Iterator[Problem]:
    if not group.profile:
        return
    if not may_be_tensorrt(config):
        message = f"{what} specifies 'profile', which only TensorRT models have"
        yield Problem(message, f"{path}.profile", hint="leave 'profile' out")
        return
    for index, profile in enumerate(group.profile):
        if not (profile.isascii() and profile.isdigit()):
            message = f"{what} has the profile '{profile}', which is no index"
            yield Problem(message, element(f"{path}.profile", index), hint="profiles count from 0")


def _resources(config: ModelConfig) -> Iterator[Problem]:
    scopes: dict[str, bool] = {}
    for index, group in enumerate(config.instance_group):
        resources = group.rate_limiter.resources if group.rate_limiter is not None else ()
        for position, resource in enumerate(resources):
            path = element(f"instance_group[{index}].rate_limiter.resources", position)
            if not resource.name:
                yield Problem("a resource of the rate limiter must have a name", path)
            if scopes.setdefault(resource.name, resource.global_) != resource.global_:
                message = f'Resource "{resource.name}" is present as both global and device-specific resource'
                yield Problem(f"{message} in the model configuration.", path, hint="give it one scope everywhere")
