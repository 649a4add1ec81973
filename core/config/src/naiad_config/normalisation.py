"""Normalisation of a configuration: fills in the defaults of the server, and places the instances of each group."""

from dataclasses import replace
from typing import Protocol

from naiad_config.errors import ConfigError, Problem
from naiad_config.model import ModelConfig
from naiad_config.optimization import ModelOptimizationPolicy, PinnedMemoryBuffer
from naiad_config.placement import InstanceKind, ModelInstanceGroup, ModelVersionPolicy, Placement, VersionsLatest
from naiad_config.scheduling import ModelDynamicBatching
from naiad_config.sequences import ModelSequenceBatching

SEQUENCE_IDLE_MICROSECONDS = 1_000_000
"""How long a sequence may be silent before its slot is given away, where its model does not say."""


class InstanceDefaults(Protocol):
    """What a backend says of instances whose group leaves it open; `naiad.backend.BackendTraits` has it."""

    @property
    def cpu_instances(self) -> int:
        """How many instances a CPU group without a count has."""
        ...

    @property
    def uses_gpus(self) -> bool:
        """Whether KIND_AUTO may mean a GPU."""
        ...


def is_ensemble(config: ModelConfig) -> bool:
    """Whether the configuration describes an ensemble, which has no instances and no files of its own."""
    return config.ensemble_scheduling is not None or config.platform == "ensemble"


def is_isolated(config: ModelConfig) -> bool:
    """Whether the parameter `isolation` keeps the instances out of the server's process."""
    parameter = config.parameters.get("isolation")
    return parameter is not None and parameter.string_value.strip() not in ("", "thread")


def scheduler_name(config: ModelConfig) -> str:
    """The parameter `scheduler` where there is one, else the member of `scheduling_choice`, else the default."""
    parameter = config.parameters.get("scheduler")
    if parameter is not None and parameter.string_value:
        return parameter.string_value
    for choice in ("dynamic_batching", "sequence_batching"):
        if getattr(config, choice) is not None:
            return choice
    return "default"


def normalise(config: ModelConfig, *, traits: InstanceDefaults | None, gpus: int = 0) -> ModelConfig:
    """The configuration as the server works by it and shows it; normalising it twice changes nothing.

    The configuration has its name already. `traits` are the backend's (None for an ensemble), `gpus` the number of GPUs
    here. What only the files of the model can tell (platform, inputs, outputs) is not filled here.
    """
    ensemble = is_ensemble(config)
    return replace(
        config,
        version_policy=_version_policy(config.version_policy),
        instance_group=config.instance_group if ensemble else _groups(config, traits, gpus),
        dynamic_batching=_dynamic(config.dynamic_batching, config.max_batch_size),
        sequence_batching=_sequence(config.sequence_batching, config.max_batch_size),
        optimization=config.optimization if ensemble else _optimization(config.optimization),
    )


def instance_placements(config: ModelConfig, gpus: int = 0) -> tuple[Placement, ...]:
    """Where each instance of a normalised configuration lives, in the order of its groups; () for an ensemble.

    The instances `<group>_0`, `<group>_1`, … of a group on several GPUs are on each of them: name and device together
    tell instances apart. Raises ConfigError when a group asks for a GPU that is not here.
    """
    problems = [
        problem for index, group in enumerate(config.instance_group) for problem in _missing_gpus(group, index, gpus)
    ]
    if problems:
        raise ConfigError(problems)
    return tuple(placement for group in config.instance_group for placement in _placements(group, gpus))


def _version_policy(policy: ModelVersionPolicy | None) -> ModelVersionPolicy:
    """The policy, or the newest version alone; `latest` without a number is one version too."""
    if policy is None or policy == ModelVersionPolicy():
        return ModelVersionPolicy(latest=VersionsLatest(num_versions=1))
    if policy.latest is not None and policy.latest.num_versions == 0:
        return ModelVersionPolicy(latest=VersionsLatest(num_versions=1))
    return policy


def _groups(config: ModelConfig, traits: InstanceDefaults | None, gpus: int) -> tuple[ModelInstanceGroup, ...]:
    """Every group with a name, a kind that is not AUTO and a count; one group when the configuration has none."""
    if not config.instance_group:
        return (_group(ModelInstanceGroup(name=config.name), traits, gpus),)
    named = (
        group if group.name else replace(group, name=f"{config.name}_{index}")
        for index, group in enumerate(config.instance_group)
    )
    return tuple(_group(group, traits, gpus) for group in named)


def _group(group: ModelInstanceGroup, traits: InstanceDefaults | None, gpus: int) -> ModelInstanceGroup:
    kind = _kind(group, gpus if traits is None or traits.uses_gpus else 0)
    count = group.count
    if count < 1:
        count = traits.cpu_instances if traits is not None and kind is InstanceKind.KIND_CPU else 1
    listed = group.gpus
    if kind is InstanceKind.KIND_GPU:
        listed = listed or tuple(range(gpus))
    elif group.kind is InstanceKind.KIND_AUTO:
        listed = ()
    return replace(group, kind=kind, count=count, gpus=listed)


def _kind(group: ModelInstanceGroup, gpus: int) -> InstanceKind:
    """The group's kind; AUTO is the GPU when there is one and every GPU that the group lists is here, else the CPU.

    `gpus` is how many the backend can use.
    """
    if group.kind is not InstanceKind.KIND_AUTO:
        return group.kind
    here = gpus > 0 and all(0 <= gpu < gpus for gpu in group.gpus)
    return InstanceKind.KIND_GPU if here else InstanceKind.KIND_CPU


def _dynamic(batching: ModelDynamicBatching | None, max_batch_size: int) -> ModelDynamicBatching | None:
    if batching is None or batching.preferred_batch_size or max_batch_size < 1:
        return batching
    return replace(batching, preferred_batch_size=(max_batch_size,))


def _sequence(batching: ModelSequenceBatching | None, max_batch_size: int) -> ModelSequenceBatching | None:
    if batching is None:
        return None
    oldest = batching.oldest
    if oldest is not None and not oldest.preferred_batch_size and max_batch_size > 0:
        oldest = replace(oldest, preferred_batch_size=(max_batch_size,))
    idle = batching.max_sequence_idle_microseconds or SEQUENCE_IDLE_MICROSECONDS
    return replace(batching, oldest=oldest, max_sequence_idle_microseconds=idle)


def _optimization(policy: ModelOptimizationPolicy | None) -> ModelOptimizationPolicy:
    """The policy with pinned memory on for inputs and outputs, unless the configuration decides otherwise."""
    policy = policy or ModelOptimizationPolicy()
    on = PinnedMemoryBuffer(enable=True)
    return replace(
        policy,
        input_pinned_memory=policy.input_pinned_memory or on,
        output_pinned_memory=policy.output_pinned_memory or on,
    )


def _missing_gpus(group: ModelInstanceGroup, index: int, gpus: int) -> list[Problem]:
    if group.kind is not InstanceKind.KIND_GPU:
        return []
    name = f"instance group '{group.name}'"
    if gpus == 0:
        hint = "use KIND_CPU, or KIND_AUTO to take a GPU only where there is one"
        message = f"{name} has kind KIND_GPU but no GPUs are available"
        return [Problem(message, f"instance_group[{index}].kind", hint=hint)]
    here = ", ".join(str(gpu) for gpu in range(gpus))
    return [
        Problem(
            f"{name} specifies invalid or unsupported gpu id {gpu}",
            f"instance_group[{index}].gpus[{position}]",
            hint=f"the GPUs here are {here}",
        )
        for position, gpu in enumerate(group.gpus)
        if not 0 <= gpu < gpus
    ]


def _placements(group: ModelInstanceGroup, gpus: int) -> list[Placement]:
    kind = {InstanceKind.KIND_GPU: "GPU", InstanceKind.KIND_MODEL: "MODEL"}.get(group.kind, "CPU")
    devices = (group.gpus or tuple(range(gpus))) if kind == "GPU" else (0,)
    return [
        Placement(f"{group.name}_{index}", kind, device, group)
        for index in range(max(group.count, 1))
        for device in devices
    ]
