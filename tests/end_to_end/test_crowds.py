"""Many clients at once, and more requests than a queue takes: every request is answered, or refused with a reason."""

import asyncio
import json
import resource
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from .asking import KINDS, ROW
from .conftest import Start
from .gates import Gate
from .running import PATIENCE, Answer, Running, post, until

CLIENTS = 1000
POLICY = "dynamic_batching { default_queue_policy { max_queue_size: %d } }"


@pytest.fixture(autouse=True)
def _many_files() -> Iterator[None]:
    """This process may have as many connections open as it takes."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, 4096), hard))
    yield
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def flat(number: int = 1) -> dict:
    return {"inputs": [{"name": "x", "datatype": "FP32", "shape": [1], "data": [number]}]}


async def one_answer(reader: asyncio.StreamReader) -> Answer:
    head = (await reader.readuntil(b"\r\n\r\n")).decode()
    status, *lines = head.strip().split("\r\n")
    headers = {name.lower(): value for name, value in (line.split(": ", 1) for line in lines)}
    return Answer(int(status.split()[1]), headers, await reader.readexactly(int(headers["content-length"])))


async def clients(port: int, requests: list[list[bytes]]) -> list[list[Answer]]:
    """The answers to each client, who all come at once and ask one request after the other on one connection."""
    everybody_is_here = asyncio.Barrier(len(requests))

    async def client(mine: list[bytes]) -> list[Answer]:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        await everybody_is_here.wait()
        answers = []
        for request in mine:
            writer.write(request)
            answers.append(await one_answer(reader))
        writer.close()
        await writer.wait_closed()
        return answers

    async with asyncio.timeout(2 * PATIENCE):
        return await asyncio.gather(*map(client, requests))


def test_a_thousand_clients_at_once_are_all_answered(server: Running) -> None:
    requests = [
        [post("/v2/models/echo/infer", flat(number * 3 + turn)) for turn in range(3)] for number in range(CLIENTS)
    ]

    answers = asyncio.run(clients(server.port, requests))

    got = [answer.document["outputs"][0]["data"][0] for mine in answers for answer in mine]
    assert got == list(range(3 * CLIENTS))


def numbers_to_add(path: str, seed: int) -> tuple[bytes, np.ndarray]:
    """A binary request of so many rows with numbers that no other request has, and the sums to expect."""
    size = (1, 2, 3, 8)[seed % 4]
    a = np.arange(4 * size, dtype=np.float32).reshape(size, 4) + 100 * seed
    b = np.full((size, 4), 0.25, np.float32)
    inputs = [
        {"name": name, "datatype": "FP32", "shape": [size, 4], "parameters": {"binary_data_size": 16 * size}}
        for name in "AB"
    ]
    outputs = [{"name": "SUM", "parameters": {"binary_data": True}}]
    text = json.dumps({"id": str(seed), "inputs": inputs, "outputs": outputs}).encode()
    request = post(path, text + a.tobytes() + b.tobytes(), Inference_Header_Content_Length=len(text))
    return request, a + b


@pytest.mark.parametrize("kind", KINDS)
def test_in_batches_of_many_clients_everybody_gets_the_rows_of_their_own_numbers(server: Running, kind: str) -> None:
    path = f"/v2/models/{kind}_add_sub/infer"
    bodies = [[numbers_to_add(path, 20 * number + turn) for turn in range(20)] for number in range(50)]

    answers = asyncio.run(clients(server.port, [[request for request, _ in mine] for mine in bodies]))

    for mine, expected in zip(answers, bodies, strict=True):
        for answer, (_, sums) in zip(mine, expected, strict=True):
            content = answer.body[int(answer.headers["inference-header-content-length"]) :]
            assert content == sums.tobytes()
    statistics = server.statistics(f"{kind}_add_sub")
    assert statistics["inference_stats"]["success"]["count"] == 1000
    assert statistics["execution_count"] < 1000


def test_clients_that_vanish_in_crowds_leave_nothing_behind(server: Running, gate: Gate) -> None:
    gate.write_model(server.repository, "narrow", f"max_batch_size: 4 {POLICY % 500}", max_batch_size=4)
    server.load("narrow")

    with server.connected() as wire:
        wire.send(post("/v2/models/narrow/infer", ROW))
        gate.wait_until_entered()
        for _ in range(4):
            with server.connections(100) as leaving:
                for each in leaving:
                    each.send(post("/v2/models/narrow/infer", ROW))
                server.read_all()
        gate.open()
        first = wire.answer()
    statistics = server.statistics("narrow")
    server.unload("narrow")

    assert first is not None
    assert (first.status, statistics["inference_count"]) == (200, 1)
    assert statistics["inference_stats"]["fail"]["count"] == 400


def test_a_server_takes_more_clients_than_the_usual_limit_of_open_files_allows(start: Start, repository: Path) -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (256, hard))
    try:
        running = start()
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))

    answers = asyncio.run(clients(running.port, [[post("/v2/models/echo/infer", flat())]] * CLIENTS))

    assert Counter(mine[0].status for mine in answers) == {200: CLIENTS}
    running.stop()


def test_a_server_that_has_run_out_of_files_serves_those_it_has_and_recovers(start: Start, repository: Path) -> None:
    running = start()
    assert running.infer("echo", 1).status == 200
    before = resource.prlimit(running.pid, resource.RLIMIT_NOFILE)
    taken = len(list(Path(f"/proc/{running.pid}/fd").iterdir()))

    with running.connected() as wire:
        running.read_all()
        resource.prlimit(running.pid, resource.RLIMIT_NOFILE, (taken + 1, before[1]))
        with running.connections(50):
            wire.send(post("/v2/models/echo/infer", flat()))
            held = wire.answer()
        resource.prlimit(running.pid, resource.RLIMIT_NOFILE, before)
    until(lambda: accepts(running))

    assert (held and held.status, running.infer("echo", 1).status) == (200, 200)
    running.stop()


def accepts(running: Running) -> bool:
    """Whether it takes a new client."""
    try:
        return running.ask("GET", "/v2/health/live").status == 200
    except ConnectionError:
        return False
