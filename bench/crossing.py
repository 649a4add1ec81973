"""What a request costs without any frontend: `Server.submit`, the worker's thread and back, for the add/sub model."""

import argparse
import asyncio
import time
from collections.abc import Callable
from statistics import median

import numpy as np
from naiad import Request, Response, Server
from naiad.errors import NaiadError
from naiad_tensors.laid_out import Field, InputLayout, LaidOutInputs

import naiad_custom
import naiad_scheduler_dynamic
from rounds import MODELS

_OUTSTANDING = (1, 16, 64)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--requests", type=int, default=30_000, help="requests a measurement")
    parser.add_argument("--model", default="add_sub", help="a model with inputs INPUT0 and INPUT1, FP32[16] each")
    arguments = parser.parse_args()
    with asyncio.Runner(loop_factory=loop_factory()) as runner:
        runner.run(_measure(arguments.model, arguments.rounds, arguments.requests))


async def _measure(model: str, rounds: int, requests: int) -> None:
    options = {"model-control-mode": "explicit", "load-model": (model,)}
    plugins = [naiad_custom, naiad_scheduler_dynamic]
    async with Server(model_repository=[MODELS], plugins=plugins, options=options) as server:
        for outstanding in _OUTSTANDING:
            await Pump(server, model, outstanding, requests // 10).run()
            seconds = [await Pump(server, model, outstanding, requests).run() for _ in range(rounds)]
            cost = median(seconds) / requests * 1e6
            spread = f"{min(seconds) / requests * 1e6:.1f}–{max(seconds) / requests * 1e6:.1f}"
            print(f"{outstanding:3} outstanding: {cost:6.1f} µs a request ({spread}), {1e6 / cost:8,.0f} requests/s")


class Pump:
    """Keeps so many requests outstanding, each answer sending the next, until `total` were answered."""

    def __init__(self, server: Server, model: str, outstanding: int, total: int) -> None:
        self._server = server
        self._model = model
        self._outstanding = outstanding
        self._to_send = self._to_come = total
        self._done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        dtype = np.dtype(np.float32)
        fields = [Field(f"INPUT{index}", "FP32", (1, 16), dtype, 64 * index, 64) for index in range(2)]
        self._layout, self._content = InputLayout(fields), np.arange(32, dtype=dtype).tobytes()

    async def run(self) -> float:
        """Seconds from the first request to the last answer. Raises the first error of a request."""
        started = time.perf_counter()
        for _ in range(self._outstanding):
            self._send()
        await self._done
        return time.perf_counter() - started

    def _send(self) -> None:
        if self._to_send:
            self._to_send -= 1
            inputs = LaidOutInputs(self._layout, self._content)  # as the frontends make them
            self._server.submit(Request(self._model, inputs), self._take)

    def _take(self, outcome: Response | NaiadError) -> None:
        if isinstance(outcome, NaiadError) and not self._done.done():
            self._done.set_exception(outcome)
        self._to_come -= 1
        if self._to_come:
            self._send()
        elif not self._done.done():
            self._done.set_result(None)


def loop_factory() -> Callable[[], asyncio.AbstractEventLoop] | None:
    """uvloop's loops, where it is installed."""
    try:
        import uvloop
    except ImportError:
        return None
    return uvloop.new_event_loop


if __name__ == "__main__":
    main()
