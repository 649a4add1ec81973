"""The answers of a local server as streams: what stays of them when their reader leaves."""

import asyncio
from types import SimpleNamespace
from typing import Any

from naiad_kit.frontends.embedding import Message, Receive, Send
from naiad_ray.local import LocalServer
from naiad_ray.raw import HttpRequest
from naiad_testing.loops import turns

GENERATE = HttpRequest("POST", b"/v2/models/m/generate_stream", b"", (), b"{}")


async def endless(scope: Message, receive: Receive, send: Send) -> None:
    """An application whose answer has no end."""
    while True:
        await send({"type": "http.response.body", "body": b"x", "more_body": True})


async def test_a_reader_that_leaves_ends_the_task_of_its_answer() -> None:
    server: Any = SimpleNamespace()
    local = LocalServer(server, endless, {})
    before = asyncio.all_tasks()

    events = local.stream_http(GENERATE)
    await anext(events)
    await turns()  # so that more events wait than are taken
    await events.aclose()
    await turns()

    assert asyncio.all_tasks() == before
