"""Parser of model versions in URLs and messages."""

from naiad.errors import InvalidArgumentError

_MAX_VERSION = 2**63 - 1


def read_version(text: str) -> int:
    """The model version that these digits name. Raises InvalidArgumentError for 0 and for what passes 63 bits."""
    if len(text) > 19 or int(text) > _MAX_VERSION:
        raise InvalidArgumentError(
            f"failed to get model version from specified version string '{text:.40}' (details: out of range), "
            f"version should be an integral value > 0"
        )
    if int(text) == 0:
        raise InvalidArgumentError(
            f"invalid model version specified '{text}' , version should be an integral value > 0"
        )
    return int(text)
