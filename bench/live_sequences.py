"""What a request of a sequence costs in a server without frontends, among so many live sequences.

Processor time from `Server.submit` to the answer, with the kernel's threads, states and control tensors: one instance,
batches of 32 out of as many candidates as there are sequences, and an accumulator with implicit state.
"""

import argparse
import asyncio
import gc
import json
import random
import time
from collections import deque
from itertools import cycle
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
from naiad import Request, Response, Server, Tensor
from naiad.backend import Answer, Batch
from naiad.errors import NaiadError
from naiad_testing.backends import FakeBackend

import naiad_scheduler_sequence

_OUTSTANDING = 64
_CONFIG = """
max_batch_size: 32
input {{ name: "INPUT" data_type: TYPE_FP32 dims: [ 1 ] }}
output {{ name: "OUTPUT" data_type: TYPE_FP32 dims: [ 1 ] }}
sequence_batching {{
  max_sequence_idle_microseconds: 3600000000
  oldest {{ max_candidate_sequences: {live} }}
  control_input {{ name: "START" control {{ kind: CONTROL_SEQUENCE_START fp32_false_true: [ 0, 1 ] }} }}
  state {{ input_name: "SUM" output_name: "NEXT" data_type: TYPE_FP32 dims: [ 1 ] }}
}}
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--live", type=int, nargs="+", default=[100, 100_000], help="how many sequences are live")
    parser.add_argument("--rounds", type=int, default=5, help="the best of these counts")
    parser.add_argument("--requests", type=int, default=50_000, help="requests a round")
    arguments = parser.parse_args()
    cost = asyncio.run(_measure(arguments.live, arguments.rounds, arguments.requests))
    print(json.dumps({"microseconds_per_request": cost}))


async def _measure(live: list[int], rounds: int, requests: int) -> dict[int, float]:
    backend = FakeBackend(answer=_accumulate)
    backend.batches = deque(maxlen=1)  # type: ignore[assignment]
    with TemporaryDirectory() as folder:
        for count in live:
            backend.write(Path(folder), f"live_{count}", _CONFIG.format(live=count))
        async with Server(model_repository=[folder], plugins=[backend, naiad_scheduler_sequence]) as server:
            pumps = {count: Pump(server, count) for count in live}
            for count, pump in pumps.items():
                await pump.run(count, start=True)
            gc.collect()
            gc.freeze()
            best = dict.fromkeys(live, float("inf"))
            for _ in range(rounds):
                for count, pump in pumps.items():
                    started = time.process_time()
                    await pump.run(requests)
                    best[count] = min(best[count], (time.process_time() - started) / requests * 1e6)
            for count, pump in pumps.items():
                await pump.run(count, end=True)  # or else the server waits for the sequences
    return best


def _accumulate(batch: Batch) -> Answer:
    total = batch.input("INPUT") + batch.input("SUM") * (1 - batch.input("START"))
    return {"OUTPUT": total, "NEXT": total}


class Pump:
    """Keeps requests of so many sequences outstanding, each answer sending one of the next sequence, drawn by lot."""

    def __init__(self, server: Server, live: int) -> None:
        names = list(range(1, live + 1))
        random.Random(0).shuffle(names)
        self._server = server
        self._model = f"live_{live}"
        self._names = cycle(names)
        self._inputs = {"INPUT": Tensor.of("INPUT", np.ones((1, 1), np.float32))}

    async def run(self, total: int, start: bool = False, end: bool = False) -> None:
        """Send so many requests and wait for all answers. Raises the first error of one."""
        self._to_send = self._to_come = total
        self._flags = {"sequence_start": start, "sequence_end": end}
        self._done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        for _ in range(_OUTSTANDING):
            self._send()
        await self._done

    def _send(self) -> None:
        if self._to_send:
            self._to_send -= 1
            name = next(self._names)
            self._server.submit(Request(self._model, self._inputs, correlation_id=name, **self._flags), self._take)

    def _take(self, outcome: Response | NaiadError) -> None:
        if isinstance(outcome, NaiadError) and not self._done.done():
            self._done.set_exception(outcome)
        self._to_come -= 1
        if self._to_come:
            self._send()
        elif not self._done.done():
            self._done.set_result(None)


if __name__ == "__main__":
    main()
