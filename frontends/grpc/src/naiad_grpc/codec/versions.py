"""Decoder of model names and versions in messages."""

from typing import Any

from naiad.errors import InvalidArgumentError
from naiad_kit.frontends.versions import read_version


def model_version(text: str) -> int:
    """The version in a message; "" is 0, the server's choice. Raises InvalidArgumentError."""
    if not text:
        return 0
    if text.isascii() and text.isdecimal():
        return read_version(text)
    raise InvalidArgumentError(
        f"failed to get model version from specified version string '{text:.40}' (details: not a number), "
        "version should be an integral value > 0"
    )


def model_of(request: Any) -> tuple[str, int]:
    """The model and version (0: unspecified) in a message. Raises InvalidArgumentError."""
    return request.name, model_version(request.version)
