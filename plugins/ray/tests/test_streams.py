"""Streams over several groups: requests in replicas end with the stream of their client."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest

pytest.importorskip("ray")

from naiad_kit.frontends.embedding import StatusError
from naiad_ray.raw import GrpcRequest, RawAnswer
from naiad_ray.sequences import SequenceOwners
from naiad_testing.loops import turns

pytestmark = [pytest.mark.ray, pytest.mark.filterwarnings("default")]  # Ray warns of what these tests are not about

ENDLESS, FAILING = b"\x0a\x07endless", b"\x0a\x07failing"


class Answers:
    """The answers of a replica to one message: an error, or answers without an end."""

    def __init__(self, message: bytes) -> None:
        self.message = message
        self.cancelled = False

    def __aiter__(self) -> "Answers":
        return self

    async def __anext__(self) -> bytes | RawAnswer:
        await asyncio.sleep(0)
        return b"answer" if self.message == ENDLESS else RawAnswer(13, text="it failed")

    def cancel(self) -> None:
        self.cancelled = True


class Groups:
    """One group with every model, and the answers that its replicas give."""

    def __init__(self) -> None:
        self.sequences = SequenceOwners()
        self.answers: list[Answers] = []

    def group_of(self, model: str) -> str:
        return "g"

    def stream_rpc(self, request: GrpcRequest, group: str, session: str) -> Any:
        self.answers.append(Answers(request.message))
        return self.answers[-1]


def forwarded(groups: Groups) -> Any:
    """A stream over these groups; its module imports Ray Serve, with its warnings."""
    from naiad_ray.streams import ForwardedStream

    return ForwardedStream(groups, ())


async def messages(*those: bytes) -> AsyncIterator[bytes]:
    for message in those:
        yield message


async def test_a_stream_that_ends_by_an_error_cancels_its_other_requests() -> None:
    groups = Groups()
    stream = forwarded(groups)
    reading = asyncio.create_task(stream.read(messages(ENDLESS, FAILING)))

    with pytest.raises(StatusError, match="it failed"):
        async for _ in stream.answers():
            pass
    reading.cancel()
    stream.cancel()
    await asyncio.wait((reading,))
    await turns()

    assert [each.cancelled for each in groups.answers] == [True, True]


async def test_a_client_that_leaves_while_answers_wait_for_it_ends_its_stream() -> None:
    groups = Groups()
    stream = forwarded(groups)
    before = asyncio.all_tasks()
    reading = asyncio.create_task(stream.read(messages(ENDLESS)))

    await turns(300)  # until no more answers are taken
    reading.cancel()
    stream.cancel()
    await turns()

    assert asyncio.all_tasks() == before
