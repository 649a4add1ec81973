"""`pb_utils.PreferredMemory`: where the outputs of a call to another model should lie."""

from enum import Enum, IntEnum

from naiad_custom.triton.texts import a_number


class MemoryType(IntEnum):
    """Kinds of memory, and no preference."""

    __str__ = Enum.__str__
    TRITONSERVER_MEMORY_GPU = 0
    TRITONSERVER_MEMORY_CPU = 1
    DEFAULT = 2


TRITONSERVER_MEMORY_CPU = MemoryType.TRITONSERVER_MEMORY_CPU
TRITONSERVER_MEMORY_GPU = MemoryType.TRITONSERVER_MEMORY_GPU


class PreferredMemory:
    """A kind of memory and the device's number. Raises TypeError for anything else."""

    __slots__ = ("_device_id", "_memory_type")

    def __init__(self, preferred_memory_type: MemoryType, preferred_device_id: int = 0) -> None:
        if not isinstance(preferred_memory_type, MemoryType):
            raise TypeError(
                "the memory type of a pb_utils.PreferredMemory must be TRITONSERVER_MEMORY_CPU or "
                f"TRITONSERVER_MEMORY_GPU, not {preferred_memory_type!r}"
            )
        self._memory_type = preferred_memory_type
        self._device_id = a_number("the device of a pb_utils.PreferredMemory", preferred_device_id, 64, signed=True)

    def memory_type(self) -> MemoryType:
        """The kind of memory."""
        return self._memory_type

    def device_id(self) -> int:
        """The device's number."""
        return self._device_id
