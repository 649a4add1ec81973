"""Model names and versions in messages."""

from typing import Any

from naiad_grpc.codec.versions import model_version


def model_of(request: Any) -> tuple[str, int]:
    """The model and version (0: unspecified) in a message. Raises InvalidArgumentError."""
    return request.name, model_version(request.version)
