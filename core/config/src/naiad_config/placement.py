"""Messages of instance groups with their rate limiter resources, and of version policies.

Field names, numbers and types are those of `model_config.proto` of the Open Inference Protocol's Triton extensions.
"""

from dataclasses import dataclass
from enum import IntEnum
from typing import Annotated, ClassVar

from naiad_config.fields import Wire, message


class InstanceKind(IntEnum):
    """Where instances live: on GPUs, on the CPU, where the model decides, or (AUTO) on a GPU when there is one."""

    KIND_AUTO = 0
    KIND_GPU = 1
    KIND_CPU = 2
    KIND_MODEL = 3


class SecondaryDeviceKind(IntEnum):
    """Kinds of devices that an instance uses beside its own."""

    KIND_NVDLA = 0


@message
class RateLimiterResource:
    """`count` units of a limited resource that an execution needs: on each device, or in one `global_` pool."""

    PROTO: ClassVar[str] = "ModelRateLimiter.Resource"

    name: Annotated[str, Wire(1)] = ""
    global_: Annotated[bool, Wire(2)] = False
    count: Annotated[int, Wire(3, "uint32")] = 0


@message
class ModelRateLimiter:
    """What an execution must get hold of before it starts; the larger the `priority` (0: 1), the less often it runs."""

    resources: Annotated[tuple[RateLimiterResource, ...], Wire(1)] = ()
    priority: Annotated[int, Wire(2, "uint32")] = 0


@message
class SecondaryDevice:
    """A further device of an instance, such as an accelerator core beside the GPU."""

    PROTO: ClassVar[str] = "ModelInstanceGroup.SecondaryDevice"

    kind: Annotated[SecondaryDeviceKind, Wire(1)] = SecondaryDeviceKind.KIND_NVDLA
    device_id: Annotated[int, Wire(2, "int64")] = 0


@message
class ModelInstanceGroup:
    """Instances that live alike: `count` of them, on each GPU of the group where it is one for GPUs.

    Instances of a `passive` group are made and never get a request. `profile` chooses TensorRT optimisation profiles.
    """

    name: Annotated[str, Wire(1)] = ""
    kind: Annotated[InstanceKind, Wire(4)] = InstanceKind.KIND_AUTO
    count: Annotated[int, Wire(2, "int32")] = 0
    rate_limiter: Annotated[ModelRateLimiter | None, Wire(6)] = None
    gpus: Annotated[tuple[int, ...], Wire(3, "int32")] = ()
    secondary_devices: Annotated[tuple[SecondaryDevice, ...], Wire(8)] = ()
    profile: Annotated[tuple[str, ...], Wire(5)] = ()
    passive: Annotated[bool, Wire(7)] = False
    host_policy: Annotated[str, Wire(9)] = ""


@message
class VersionsLatest:
    """Serve so many versions with the largest numbers; 0 means 1."""

    PROTO: ClassVar[str] = "ModelVersionPolicy.Latest"

    num_versions: Annotated[int, Wire(1, "uint32")] = 0


@message
class VersionsAll:
    """Serve every version that is there."""

    PROTO: ClassVar[str] = "ModelVersionPolicy.All"


@message
class VersionsSpecific:
    """Serve the listed versions, as far as they are there."""

    PROTO: ClassVar[str] = "ModelVersionPolicy.Specific"

    versions: Annotated[tuple[int, ...], Wire(1, "int64")] = ()


@message
class ModelVersionPolicy:
    """Which versions of the model are served; one of the three, or the latest version where none is set."""

    latest: Annotated[VersionsLatest | None, Wire(1, oneof="policy_choice")] = None
    all: Annotated[VersionsAll | None, Wire(2, oneof="policy_choice")] = None
    specific: Annotated[VersionsSpecific | None, Wire(3, oneof="policy_choice")] = None


@dataclass(frozen=True, slots=True)
class Placement:
    """Where one instance lives: its `name` (`<group>_<n>`), its `kind` (`CPU`, `GPU` or `MODEL`), device, group."""

    name: str
    kind: str
    device: int
    group: ModelInstanceGroup
