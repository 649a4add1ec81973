"""References to shared memory: the parameters of inputs and outputs that name a region instead of carrying bytes."""

from collections.abc import Mapping
from typing import Any, NamedTuple

from naiad.errors import InvalidArgumentError
from naiad_grpc.codec.parameters import parameter_of, size_of

_REGION, _SIZE, _OFFSET = "shared_memory_region", "shared_memory_byte_size", "shared_memory_offset"


class Reference(NamedTuple):
    """The `byte_size` bytes at `offset` of the region of that name."""

    region: str
    offset: int
    byte_size: int


def read_reference(parameters: Mapping[str, Any], tensor: str) -> Reference | None:
    """The reference in these parameters of a tensor, None without one; `tensor` names it in errors.

    Raises InvalidArgumentError for a wrong type, a negative number, or a region without a size.
    """
    if _REGION not in parameters:
        return None
    where = f" for {tensor}"
    region: str = parameter_of(parameters[_REGION], _REGION, "string_param", where=where)
    if _SIZE not in parameters:
        raise InvalidArgumentError(f"'{_REGION}' needs '{_SIZE}' beside it{where}, the number of bytes to use of it")
    offset = size_of(parameters[_OFFSET], _OFFSET, where) if _OFFSET in parameters else 0
    return Reference(region, offset, size_of(parameters[_SIZE], _SIZE, where))
