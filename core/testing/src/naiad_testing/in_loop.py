"""Servers in the event loop of a test that is a coroutine, and requests to models with INPUT and OUTPUT, FP32."""

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import numpy as np

from naiad import Server
from naiad.types import Request
from naiad_tensors.tensors import Tensor

FLOATS = """
input { name: "INPUT" data_type: TYPE_FP32 dims: [ -1 ] }
output { name: "OUTPUT" data_type: TYPE_FP32 dims: [ -1 ] }
"""
"""The configuration of a model with INPUT and OUTPUT, FP32[-1]."""


@asynccontextmanager
async def running(root: Path | Sequence[Path], *plugins: object, **options: Any) -> AsyncIterator[Server]:
    """A started server. It does not exit for models that fail; `exit_on_error=True` and the like set other options."""
    settings = {"exit-on-error": False, **{name.replace("_", "-"): value for name, value in options.items()}}
    roots = [root] if isinstance(root, Path) else root
    async with Server(model_repository=roots, plugins=plugins, options=settings) as server:
        yield server


def request(model: str, *values: float, **fields: Any) -> Request:
    """A request with INPUT, FP32[-1]."""
    return Request(model, {"INPUT": Tensor.of("INPUT", np.array(values, dtype=np.float32))}, **fields)


def rows(model: str, *values: float, **fields: Any) -> Request:
    """A request with INPUT, FP32[-1] behind a batch dimension: one value per row."""
    tensor = Tensor.of("INPUT", np.array(values, dtype=np.float32).reshape(-1, 1))
    return Request(model, {"INPUT": tensor}, **fields)


async def off_the_loop(wait: Callable[[], None]) -> None:
    """Call a function that blocks, while the loop goes on."""
    await asyncio.to_thread(wait)


def write_model(
    root: Path, name: str, config: str = FLOATS, backend: str = "steered", versions: Sequence[int] = (1,)
) -> Path:
    """The folder of a model of that backend, with a configuration and empty version folders."""
    for version in versions:
        (root / name / str(version)).mkdir(parents=True, exist_ok=True)
    (root / name).mkdir(parents=True, exist_ok=True)
    (root / name / "config.pbtxt").write_text(f'backend: "{backend}"\n{config}\n', encoding="utf-8")
    return root / name
