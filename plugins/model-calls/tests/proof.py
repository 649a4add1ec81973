"""Proof of naiad-model-calls alone beside the kernel, in an environment of its own."""

import asyncio

from naiad import Server
from naiad.errors import NotFoundError
from naiad.types import Request
from naiad_config import ModelConfig
from naiad_kit.calls import ModelCallService


async def call():
    async with Server(options={"model-control-mode": "explicit"}) as server:
        models = server.service(ModelCallService).part_of(ModelConfig(name="outer"))
        try:
            await asyncio.wrap_future(models.begin(Request("inner", {})))
        except NotFoundError as error:
            return str(error)


assert "unknown model: 'inner'" in asyncio.run(call())
