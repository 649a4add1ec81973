"""A replica and its control plane, without Ray: orders, and a control plane that is replaced."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from naiad_ray.board import Payload, Question
from naiad_ray.control import ControlPlane
from naiad_ray.local import answer_in_json
from naiad_ray.membership import Membership
from naiad_ray.raw import HttpRequest, RawAnswer
from naiad_testing.loops import turns, until

LOAD = HttpRequest("POST", b"/v2/repository/models/m/load", b"", (), b"{}")
BAD_LOAD = HttpRequest("POST", b"/v2/repository/models/m/load", b"", (), b"bad")
BREAKING = HttpRequest("POST", b"/v2/repository/models/m/load", b"", (), b"breaking")
INDEX = Question("index")
FINE = RawAnswer(200)


class Handle:
    """The handle of a control plane, which may be replaced by another."""

    def __init__(self) -> None:
        self.plane = ControlPlane()

    def __getattr__(self, name: str) -> Any:
        return Method(getattr(self.plane, name))


class Method:
    """A method of a handle."""

    def __init__(self, method: Callable[..., Awaitable[Any]]) -> None:
        self.remote = method


class Replica:
    """A member of the group `g`, and the payloads that it has carried out."""

    def __init__(self, handle: Handle, name: str) -> None:
        self.done: list[Payload] = []
        self.membership = Membership(handle, "g", name, self.carry_out)

    async def carry_out(self, payload: Payload) -> object:
        self.done.append(payload)
        if payload is BREAKING:
            raise ValueError("a bug")
        return FINE if payload is LOAD else RawAnswer(400) if payload is BAD_LOAD else []


def let_time_pass() -> None:
    """Timers fire at once when there is nothing else to wait for."""
    loop: Any = asyncio.get_running_loop()
    loop.passes = True


async def test_an_order_is_carried_out_by_the_members_and_by_those_that_come_later() -> None:
    let_time_pass()
    handle = Handle()
    first, later = Replica(handle, "a"), Replica(handle, "b")
    await first.membership.start()

    result = await handle.plane.publish("g", LOAD, "model m")
    await later.membership.start()

    assert result.answers == {"a": FINE}
    assert first.done == later.done == [LOAD]
    await first.membership.stop()
    await later.membership.stop()


async def test_the_orders_of_a_control_plane_that_was_replaced_reach_the_members() -> None:
    let_time_pass()
    handle = Handle()
    replica, later = Replica(handle, "a"), Replica(handle, "b")
    await replica.membership.start()
    await handle.plane.publish("g", LOAD, "model m")
    for _ in range(3):
        await handle.plane.publish("g", INDEX)

    handle.plane = ControlPlane()
    async with asyncio.timeout(30):
        result = await handle.plane.publish("g", INDEX)
    await later.membership.start()

    assert result.answers == {"a": []}
    assert later.done == [LOAD]
    await replica.membership.stop()
    await later.membership.stop()


@pytest.mark.parametrize(("answer", "kept"), [(FINE, [LOAD]), (RawAnswer(400), [])], ids=["succeeds", "fails"])
async def test_an_order_whose_caller_has_gone_is_kept_if_a_replica_carries_it_out(
    answer: RawAnswer, kept: list[Payload]
) -> None:
    let_time_pass()
    plane = ControlPlane()
    await plane.join("g", "a", ())
    publishing = asyncio.create_task(plane.publish("g", LOAD, "model m"))
    published = await plane.poll("g", "a", 0)
    assert published is not None

    publishing.cancel()
    await asyncio.gather(publishing, return_exceptions=True)
    await plane.report("a", published[0].number, answer)
    await turns()
    _, later = await plane.join("g", "b", ())

    assert [order.payload for order in later] == kept
    assert await plane.poll("g", "a", 0) == []


async def test_an_order_that_failed_is_not_what_a_new_control_plane_hears_of() -> None:
    let_time_pass()
    handle = Handle()
    replica, later = Replica(handle, "a"), Replica(handle, "b")
    await replica.membership.start()
    await handle.plane.publish("g", LOAD, "model m")
    await handle.plane.publish("g", BAD_LOAD, "model m")

    handle.plane = ControlPlane()
    async with asyncio.timeout(30):
        await handle.plane.publish("g", INDEX)
    await later.membership.start()

    assert replica.done == [LOAD, BAD_LOAD, INDEX]
    assert later.done == [LOAD]
    await replica.membership.stop()
    await later.membership.stop()


async def test_a_replica_that_joins_a_new_control_plane_first_gets_what_the_others_bring() -> None:
    let_time_pass()
    handle = Handle()
    replica, newcomer = Replica(handle, "a"), Replica(handle, "b")
    await replica.membership.start()
    await handle.plane.publish("g", LOAD, "model m")
    handle.plane = ControlPlane()
    await newcomer.membership.start()
    assert newcomer.done == []

    async with asyncio.timeout(30):
        await until(lambda: newcomer.done)

    assert replica.done == newcomer.done == [LOAD]
    await replica.membership.stop()
    await newcomer.membership.stop()


async def test_an_order_that_breaks_a_replica_is_answered_with_the_error() -> None:
    let_time_pass()
    handle = Handle()
    replica = Replica(handle, "a")
    await replica.membership.start()

    async with asyncio.timeout(30):
        result = await handle.plane.publish("g", BREAKING, "model m")

    assert result.answers == {"a": answer_in_json(500, b'{"error": "ValueError: a bug"}')}
    await replica.membership.stop()
