"""Proof of naiad-shared-memory alone beside the kernel, in an environment of its own."""

import asyncio
import os
from pathlib import Path

import numpy as np

from naiad import Server
from naiad_kit.shared_memory import SharedInput, SharedMemoryApi


async def read():
    async with Server(options={"allow-client-shm": True}) as server:
        memory = server.service(SharedMemoryApi)
        memory.register_system("r", "/" + name, 4, 8)
        floats = np.dtype(np.float32)
        return memory.tensor(SharedInput("x", "FP32", (1,), floats, 1, "r", 4, 4), "m").array.tolist()


name = f"naiad_test_{os.getpid()}"
try:
    Path(f"/dev/shm/{name}").write_bytes(np.array([1, 2, 3], np.float32).tobytes())
    values = asyncio.run(read())
finally:
    Path(f"/dev/shm/{name}").unlink()
assert values == [3.0], values
