"""The control plane as a deployment: one replica that hands orders to all others and waits for their answers."""

import asyncio
from collections.abc import Sequence
from math import inf
from time import monotonic

from naiad_ray.board import LOST_SECONDS, Board, Order, Payload, Result
from naiad_ray.raw import RawAnswer

POLL_SECONDS = 2.0
"""How long a poll waits for an order. A replica polls all the time, and so says that it lives."""
QUESTION_SECONDS = 10.0
READINESS_SECONDS = 2.0
"""How long a report of statistics or the index, or of readiness, waits for replicas."""


class ControlPlane:
    """Keeps the desired state of models and settings; each method is called by a handle."""

    def __init__(self) -> None:
        self._board = Board()
        self._changed = asyncio.Condition()
        self._started = monotonic()
        self._orders: set[asyncio.Task[Result]] = set()

    async def join(self, group: str, replica: str, known: Sequence[Order]) -> tuple[int, list[Order]]:
        """A replica has come up, or finds a control plane anew: the last order's number, and what to carry out."""
        orders = self._board.join(group, replica, known, monotonic())
        await self._notify()
        return self._board.last, orders

    async def poll(self, group: str, replica: str, since: int) -> list[Order] | None:
        """The next orders for a replica, none after POLL_SECONDS; None if it must join first."""
        if not self._board.seen(replica, since, monotonic()):
            return None
        async with self._changed:
            try:
                async with asyncio.timeout(POLL_SECONDS):
                    await self._changed.wait_for(lambda: self._board.owes(replica) or self._board.orders(group, since))
            except TimeoutError:
                pass
        return [*self._board.hand_out(replica), *self._board.orders(group, since)]

    async def report(self, replica: str, number: int, answer: object) -> None:
        """A replica's answer to an order."""
        self._board.report(replica, number, answer)
        await self._notify()

    async def leave(self, replica: str) -> None:
        """A replica ends."""
        self._board.leave(replica)
        await self._notify()

    async def publish(self, group: str, payload: Payload, key: str = "", seconds: float | None = None) -> Result:
        """Have all replicas of a group carry out an order ("": of every group), and wait for their answers.

        Waits no longer than `seconds`, if any. An order with a `key` is kept for later replicas if a replica succeeded,
        also where the caller has left before.
        """
        deadline = None if seconds is None else monotonic() + seconds
        await self._wait_for_members(group, min(deadline or inf, self._started + LOST_SECONDS))
        order = self._board.publish(group, payload, key, monotonic())
        following = asyncio.get_running_loop().create_task(self._follow(order, deadline))
        self._orders.add(following)
        following.add_done_callback(self._orders.discard)
        return await asyncio.shield(following)

    async def _follow(self, order: Order, deadline: float | None) -> Result:
        """The result of an order that was published, when it has one."""
        try:
            await self._notify()
            async with self._changed:
                while self._board.waits(order.number) and (deadline is None or monotonic() < deadline):
                    try:
                        async with asyncio.timeout(0.5):
                            await self._changed.wait()
                    except TimeoutError:
                        self._board.expire(monotonic())
        finally:
            result = self._board.close(order.number)
        keep = not result.answers or any(
            isinstance(each, RawAnswer) and each.succeeded for each in result.answers.values()
        )
        if keep and order.key:
            self._board.keep(order)
        return result

    async def _wait_for_members(self, group: str, deadline: float) -> None:
        """After a start, wait for replicas that knew an earlier control plane."""
        async with self._changed:
            while monotonic() < deadline and not self._board.members(group, monotonic()):
                try:
                    async with asyncio.timeout(0.5):
                        await self._changed.wait()
                except TimeoutError:
                    pass

    async def _notify(self) -> None:
        async with self._changed:
            self._changed.notify_all()
