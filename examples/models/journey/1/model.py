"""A journey from one position to another: a model that asks another one twice, and waits for both at once."""

import asyncio

from naiad_custom import BYTES, FP32, Array, AsyncServer, model


@model(outputs=("start", "end"))
async def journey(positions: Array[FP32, 2, 2], server: AsyncServer) -> tuple[Array[BYTES, 1], Array[BYTES, 1]]:
    pending = [server.infer("nearest_city", position=position[None]) for position in positions]
    start, end = await asyncio.gather(*pending)
    return start["city"][0], end["city"][0]
