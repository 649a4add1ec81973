"""Which model an RPC is about."""

from typing import Any

from naiad_grpc.codec.versions import model_version


def model_of(request: Any) -> tuple[str, int]:
    """The model and version (0: none given) that a message names. Raises InvalidArgumentError."""
    return request.name, model_version(request.version)
