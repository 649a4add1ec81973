"""Compressed bodies and answers are worked on by threads of their own, which nothing else waits for."""

import asyncio
import gzip
import json
import threading

import pytest

from naiad_http import inference_app

from .test_compression import PATH

THREADS = 2
COUNT = 20_000
BODY = json.dumps({"inputs": [{"name": "X", "datatype": "FP32", "shape": [COUNT], "data": [1] * COUNT}]}).encode()
PACKED = gzip.compress(BODY, 0)


@pytest.fixture
def held(monkeypatch):
    """Holds the work on compressed bodies until it is opened; `threads` has the names of those at work."""

    class Held:
        threads, opened, busy = [], threading.Event(), threading.Barrier(THREADS + 1)

        def hold(self, function):
            def held(*arguments):
                self.threads.append(threading.current_thread().name)
                self.busy.wait(20)
                assert self.opened.wait(20)
                return function(*arguments)

            return held

    held = Held()
    for name in ("decompress", "compress"):
        monkeypatch.setattr(inference_app, name, held.hold(getattr(inference_app, name)))
    yield held
    held.opened.set()


@pytest.mark.parametrize(
    ("body", "headers"), [(PACKED, {"Content-Encoding": "gzip"}), (BODY, {"Accept-Encoding": "gzip"})]
)
def test_others_are_answered_while_all_threads_of_compression_are_occupied(shared_server, held, body, headers):
    async def pass_through_threads(_server):
        return await asyncio.gather(*(asyncio.to_thread(int) for _ in range(20)))

    statuses = []
    clients = [
        threading.Thread(target=lambda: statuses.append(shared_server.ask("POST", PATH, body, headers)[0]))
        for _ in range(THREADS)
    ]
    for client in clients:
        client.start()
    held.busy.wait(20)
    plain, _, _ = shared_server.ask("POST", PATH, BODY)
    passed = shared_server.client.wait_for(pass_through_threads)
    before = list(statuses)
    held.opened.set()
    for client in clients:
        client.join()

    assert (plain, passed, before) == (200, [0] * 20, [])
    assert statuses == [200] * THREADS
    assert held.threads == ["naiad-http-gzip"] * THREADS
