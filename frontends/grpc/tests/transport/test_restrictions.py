"""Calls that need metadata, and invalid rules."""

import pytest

from naiad.errors import InvalidArgumentError

from .conftest import Calls, Served, answer

RULE = "inference:key=secret"
HEADER = "triton-grpc-protocol-key"


@pytest.mark.parametrize(
    ("metadata", "passes"),
    [((), False), (((HEADER, "wrong"),), False), (((HEADER, "secret"),), True), ((("key", "secret"),), False)],
)
def test_a_restricted_call_needs_its_metadata(run, metadata, passes):
    async def main():
        async with Served(Calls(), **{"grpc-restricted-protocol": (RULE,)}) as served, served.channel() as channel:
            stream = channel.stream_stream("/t/stream")(metadata=metadata)
            if passes:
                await stream.done_writing()
                await stream.read()
            return (
                await answer(channel, "echo", b"x", metadata=metadata),
                (await stream.code()).name,
                await answer(channel, "other", b"free"),
            )

    answered, streamed, other = run(main())

    assert answered == (
        b"x" if passes else ("UNAVAILABLE", f"This protocol is restricted, expecting header '{HEADER}'")
    )
    assert (streamed, other) == ("OK" if passes else "UNAVAILABLE", b"free")


@pytest.mark.parametrize("rule", ["all:key=secret", "inference", "inference,inference:key=secret"])
def test_a_restriction_that_is_invalid_is_refused(run, rule):
    async def main():
        Served(Calls(), **{"grpc-restricted-protocol": (rule,)})

    with pytest.raises(InvalidArgumentError, match="--grpc-restricted-protocol"):
        run(main())
