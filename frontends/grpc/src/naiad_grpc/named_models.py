"""The model that a call other than inference is about, from its message."""

import re
from dataclasses import dataclass
from typing import Any

from naiad_grpc.messages import rpcs

_FIELDS = {
    "ModelReady": "name",
    "ModelMetadata": "name",
    "ModelConfig": "name",
    "ModelStatistics": "name",
    "RepositoryModelLoad": "model_name",
    "RepositoryModelUnload": "model_name",
    "TraceSetting": "model_name",
}
"""The field of each RPC's request that names its model; the others name none."""

_VERSION = re.compile("[0-9]{1,18}")


@dataclass(frozen=True, slots=True)
class NamedModel:
    """Reads the model from the messages of one RPC: `request` is their class, and `field` the name of the field."""

    request: Any
    field: str

    def read(self, message: bytes) -> tuple[str, int]:
        """The name of the model, "" for all of them, and its version, 0 for none. Raises protobuf's DecodeError."""
        request = self.request.FromString(message)
        version = getattr(request, "version", "")
        return getattr(request, self.field), int(version) if _VERSION.fullmatch(version) else 0


def named_model(path: str) -> NamedModel | None:
    """What reads the model from the messages of the RPC with that path; None for one whose messages name none."""
    for rpc in rpcs():
        if rpc.path == path and rpc.name in _FIELDS:
            return NamedModel(rpc.request, _FIELDS[rpc.name])
    return None
