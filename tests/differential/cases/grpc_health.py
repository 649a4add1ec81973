"""Health, metadata, configuration and what no method is, over gRPC."""

from google.protobuf.message import Message
from tritonclient.grpc import service_pb2 as pb

from ..answers import Case
from ..grpc_asking import SERVICE, grpc_case
from ..repository import names

_VERSIONS = {
    "version_1": ("add_sub", "1"),
    "version_7": ("add_sub", "7"),
    "version_0": ("add_sub", "0"),
    "version_negative": ("add_sub", "-1"),
    "version_word": ("add_sub", "one"),
    "version_float": ("add_sub", "1.5"),
    "version_padded": ("add_sub", "01"),
    "version_spaced": ("add_sub", " 1"),
    "version_huge": ("add_sub", "99999999999999999999"),
    "version_2_of_1_and_3": ("versions", "2"),
    "version_1_of_latest": ("latest", "1"),
    "unknown": ("nothing", ""),
    "unknown_version": ("nothing", "1"),
    "no_name": ("", ""),
    "unloaded": ("unloaded", ""),
    "broken": ("broken", ""),
}
_ABOUT_MODELS = {
    "ModelReady": pb.ModelReadyRequest,
    "ModelMetadata": pb.ModelMetadataRequest,
    "ModelConfig": pb.ModelConfigRequest,
}


def cases() -> list[Case]:
    """Every case of this page."""
    cases = [grpc_case(f"grpc_health/{method}", method) for method in ("ServerLive", "ServerReady")]
    cases.append(grpc_case("grpc_health/ServerMetadata", "ServerMetadata", any_value=("$.name", "$.version")))
    for method, kind in _ABOUT_MODELS.items():
        fields = {name: (name, "") for name in names()} | _VERSIONS
        for key, (name, version) in fields.items():
            cases.append(grpc_case(f"grpc_{method}/{key}", method, kind(name=name, version=version)))
    return [*cases, *_standard(), *_no_methods(), *_noise()]


def _standard() -> list[Case]:
    """The standard health service; its requests hold one string, the name of a service."""
    services = {"": "", "service": SERVICE, "other": "other"}
    check = "grpc.health.v1.Health/Check"
    return [
        grpc_case(f"grpc_check/{key}", check, bytes([10, len(name)]) + name.encode() if name else b"")
        for key, name in services.items()
    ]


def _no_methods() -> list[Case]:
    methods = {
        "method": f"{SERVICE}/Nothing",
        "service": "inference.Nothing/ModelInfer",
        "lower_case": f"{SERVICE}/modelinfer",
        "other_package": "other.GRPCInferenceService/ModelInfer",
    }
    return [grpc_case(f"grpc_nothing/{key}", method) for key, method in methods.items()]


def _noise() -> list[Case]:
    good = pb.ModelReadyRequest(name="add_sub").SerializeToString()
    contents: dict[str, bytes | Message] = {
        "empty": b"",
        "noise": b"\xff\xff\xff\xff",
        "cut": good[:-1],
        "unknown_field": good + b"\x7a\x01x",
        "unknown_group": good + b"\x7b\x7c",
        "wrong_type": b"\x08\x05",
        "latin_1": b"\x0a\x01\xfc",
        "twice": pb.ModelReadyRequest(name="nothing").SerializeToString() + good,
        "field_0": b"\x00\x00",
    }
    cases = [grpc_case(f"grpc_noise/ready_{key}", "ModelReady", content) for key, content in contents.items()]
    return cases + [grpc_case(f"grpc_noise/infer_{key}", "ModelInfer", content) for key, content in contents.items()]
