"""A server with naiad-warmup in the test's own event loop."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import numpy as np

import naiad_warmup
from naiad import Server
from naiad.types import Request
from naiad_tensors.tensors import Tensor


@asynccontextmanager
async def running(root: Path, *plugins: object, **options: Any) -> AsyncIterator[Server]:
    """A started server with these plugins beside naiad-warmup. It does not exit for models that fail."""
    values = {"exit-on-error": False, **{name.replace("_", "-"): value for name, value in options.items()}}
    async with Server(model_repository=[root], plugins=[naiad_warmup, *plugins], options=values) as server:
        yield server


def request(model: str, *values: float) -> Request:
    """A request with INPUT, FP32[-1]."""
    return Request(model, {"INPUT": Tensor.of("INPUT", np.array(values, dtype=np.float32))})


async def off_the_loop(wait: Callable[[], None]) -> None:
    """Wait for something that blocks, while the loop goes on."""
    await asyncio.to_thread(wait)
