"""Proof of naiad-tracing alone beside the kernel, in an environment of its own."""

import asyncio
import json
from pathlib import Path

from naiad import Server
from naiad_kit.tracing import Tracing


async def trace():
    options = {"trace-config": ("rate=1", "level=TIMESTAMPS", "triton,file=trace.json")}
    async with Server(model_repository=["models"], options=options) as server:
        server.service(Tracing).sample("m", 1, "7").end()


Path("models").mkdir()
asyncio.run(trace())
assert [each["model_name"] for each in json.loads(Path("trace.json").read_text())] == ["m"]
