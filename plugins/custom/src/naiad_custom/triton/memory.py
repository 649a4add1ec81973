"""`pb_utils.PreferredMemory`: where the outputs of a call to another model should lie."""

from enum import IntEnum


class MemoryType(IntEnum):
    """Kinds of memory, and no preference."""

    TRITONSERVER_MEMORY_CPU = 0
    TRITONSERVER_MEMORY_GPU = 2
    DEFAULT = 3


TRITONSERVER_MEMORY_CPU = MemoryType.TRITONSERVER_MEMORY_CPU
TRITONSERVER_MEMORY_GPU = MemoryType.TRITONSERVER_MEMORY_GPU


class PreferredMemory:
    """A kind of memory and the device's number."""

    __slots__ = ("_device_id", "_memory_type")

    def __init__(self, preferred_memory_type: MemoryType, preferred_device_id: int = 0) -> None:
        self._memory_type = preferred_memory_type
        self._device_id = preferred_device_id

    def memory_type(self) -> MemoryType:
        """The kind of memory."""
        return self._memory_type

    def device_id(self) -> int:
        """The device's number."""
        return self._device_id
