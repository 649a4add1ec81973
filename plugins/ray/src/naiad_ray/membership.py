"""A replica's side of the control plane: joins it, carries out its orders, and comes back after it was replaced."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable
from typing import Any

from naiad.foreign_errors import describe_error
from naiad_ray.board import Order, Payload, Question
from naiad_ray.gateway import INTERNAL, error_answer
from naiad_ray.raw import RawAnswer

_RETRY_SECONDS = 0.5
_logger = logging.getLogger("naiad.ray")


class Membership:
    """One replica as a member of its group. `carry_out` answers the payload of an order."""

    def __init__(
        self, control: Any, group: str, replica: str, carry_out: Callable[[Payload], Awaitable[object]]
    ) -> None:
        self._control = control
        self._group = group
        self._replica = replica
        self._carry_out = carry_out
        self._known: dict[tuple[str, str], Order] = {}
        self._since = 0
        self._turns: dict[str, asyncio.Task[None]] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._polling: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """Join, bring this replica to the desired state, and follow the orders from then on."""
        self._since, orders = await self._control.join.remote(self._group, self._replica, [])
        await self._catch_up(orders)
        self._polling = asyncio.get_running_loop().create_task(self._poll())

    @property
    def failed(self) -> bool:
        """Whether this replica follows no orders any more, because of a bug."""
        return self._polling is not None and self._polling.done()

    async def stop(self) -> None:
        """Leave the group."""
        if self._polling is not None:
            self._polling.cancel()
        try:
            async with asyncio.timeout(2.0):
                await self._control.leave.remote(self._replica)
        except Exception as error:  # noqa: BLE001 - the control plane may have ended before; it also notices silence
            _logger.info("the control plane was not notified that replica %s ends: %s", self._replica, error)

    async def _poll(self) -> None:
        while True:
            try:
                orders = await self._control.poll.remote(self._group, self._replica, self._since)
                if orders is None:
                    last, missed = await self._control.join.remote(
                        self._group, self._replica, list(self._known.values())
                    )
                    await self._catch_up(missed)
                    self._since = last  # a control plane that was replaced counts anew
                    continue
            except asyncio.CancelledError:
                raise
            except Exception as error:  # noqa: BLE001 - the control plane is being replaced
                _logger.warning("the control plane cannot be reached, trying again: %s", type(error).__name__)
                await asyncio.sleep(_RETRY_SECONDS)
                continue
            for order in orders:
                self._since = max(self._since, order.number)
                self._begin(order)

    async def _catch_up(self, orders: Iterable[Order]) -> None:
        for order in orders:
            known = self._known.get((order.group, order.key))
            if known is None or known.number < order.number:
                await self._carry(order)

    def _begin(self, order: Order) -> None:
        """Carry out an order after the earlier ones with its key; others do not wait for it."""
        before = self._turns.get(order.key) if order.key else None
        task = asyncio.get_running_loop().create_task(self._follow(order, before))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        if order.key:
            self._turns[order.key] = task

    async def _follow(self, order: Order, before: asyncio.Task[None] | None) -> None:
        if before is not None:
            await asyncio.wait((before,))
        answer = await self._carry(order)
        try:
            await self._control.report.remote(self._replica, order.number, answer)
        except Exception as error:  # noqa: BLE001 - the control plane is being replaced, and its caller gets an error
            _logger.warning("the control plane did not get the answer to order %s: %s", order.number, error)

    async def _carry(self, order: Order) -> object:
        try:
            answer = await self._carry_out(order.payload)
        except Exception as error:  # the caller of the order waits for an answer
            _logger.exception("order %s (%s) could not be carried out", order.number, order.key)
            if isinstance(order.payload, Question):
                return describe_error(error)
            return error_answer(order.payload, INTERNAL, describe_error(error))
        if order.key and isinstance(answer, RawAnswer):
            if answer.succeeded:
                self._known[order.group, order.key] = order
            else:
                _logger.warning("order %s (%s) failed: %s", order.number, order.key, answer.text or answer.body)
        return answer
