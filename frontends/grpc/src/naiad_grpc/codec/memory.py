"""Memory for large infer requests that come in parts: the first large tensor in it is aligned."""

import numpy as np

from naiad_grpc.codec.costs import model_name_and_version
from naiad_grpc.codec.framing import RequestMessage, unfinished_content
from naiad_kit.frontends.body_memory import Reserve

_ALIGNMENT = 16


def request_memory(reserve: Reserve, front: RequestMessage, size: int) -> memoryview:
    """Memory for a message of `size` bytes that begins with `front`.

    The tensor that continues after `front` begins on a multiple of 16 bytes, which saves its copy. The memory comes
    from `reserve` if that has some for the model, and the model is known. Raises MemoryError.
    """
    padding = -unfinished_content(front) % _ALIGNMENT
    model, _ = model_name_and_version(front)
    memory = reserve(model, padding + size) if model else None
    if memory is None:
        memory = memoryview(np.empty(padding + size, np.uint8))  # type: ignore[arg-type]
    return memory[padding : padding + size]
