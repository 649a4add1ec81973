"""What a scrape of the metrics of many models costs, and for how long requests have to wait for it."""

import argparse
import asyncio
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator
from pathlib import Path
from statistics import median

from naiad import Server
from naiad_kit.metrics import MetricsApi
from naiad_testing.backends import FakeBackend

import naiad_metrics

_SCRAPE = """
import http.client, sys, time
port, encoding, rounds = int(sys.argv[1]), sys.argv[2], int(sys.argv[3])
connection = http.client.HTTPConnection("127.0.0.1", port)
print("ready", flush=True)
for _ in range(rounds):
    started = time.perf_counter()
    connection.request("GET", "/metrics", headers={"Accept-Encoding": encoding})
    size = len(connection.getresponse().read())
    print(time.perf_counter() - started, size, flush=True)
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--models", type=int, default=200)
    parser.add_argument("--rounds", type=int, default=20)
    parsed = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        asyncio.run(_measure(Path(folder), parsed.models, parsed.rounds))


async def _measure(repository: Path, models: int, rounds: int) -> None:
    backend = FakeBackend()
    for number in range(models):
        backend.write(repository, f"model_{number}", "max_batch_size: 8")
    options = {"metrics-port": 0, "metrics-address": "127.0.0.1"}
    async with Server(model_repository=[repository], plugins=[backend, naiad_metrics], options=options) as server:
        port = server.plugins.frontends()["metrics"].port
        collecting = median(_seconds(server.service(MetricsApi).collect) for _ in range(rounds))
        print(f"{models} models: collecting takes {collecting * 1e3:.1f} ms")
        for encoding in ("identity", "gzip"):
            took, pauses, sizes = [], [], []
            async for seconds, size, pause in _scrapes(port, encoding, rounds):
                took.append(seconds)
                pauses.append(pause)
                sizes.append(size)
            print(
                f"{encoding}: {median(sizes) / 1e6:.2f} MB in {median(took) * 1e3:.0f} ms; "
                f"requests wait for at most {median(pauses) * 1e3:.1f} ms (median), {max(pauses) * 1e3:.1f} ms (worst)"
            )


async def _longest_pause() -> float:
    """The most processor time of its thread between two turns of the event loop until it is cancelled."""
    longest, last = 0.0, time.thread_time()
    try:
        while True:
            await asyncio.sleep(0)
            now = time.thread_time()
            longest, last = max(longest, now - last), now
    except asyncio.CancelledError:
        return longest


async def _scrapes(port: int, encoding: str, rounds: int) -> AsyncIterator[tuple[float, int, float]]:
    """Seconds, bytes and longest pause of scrapes by another process, whose work must not count as a pause of ours."""
    command = (sys.executable, "-c", _SCRAPE, str(port), encoding, str(rounds))
    process = await asyncio.create_subprocess_exec(*command, stdout=subprocess.PIPE)
    await process.stdout.readline()
    for _ in range(rounds):
        pause = asyncio.create_task(_longest_pause())
        seconds, size = (await process.stdout.readline()).split()
        pause.cancel()
        yield float(seconds), int(size), await pause
    await process.wait()


def _seconds(function: object) -> float:
    started = time.thread_time()
    function()
    return time.thread_time() - started


if __name__ == "__main__":
    main()
