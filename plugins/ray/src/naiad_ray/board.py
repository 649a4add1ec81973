"""Desired state of the control plane, as pure state: orders, the replicas that must answer them, what is kept."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Literal

from naiad.reports import Readiness
from naiad_ray.raw import GrpcRequest, HttpRequest

LOST_SECONDS = 6.0
"""A replica that has not polled for this long has ended."""

EVERY_GROUP = ""
"""The group of an order for all replicas."""


@dataclass(frozen=True, slots=True)
class Question:
    """A question to every replica about itself."""

    about: Literal["statistics", "index", "readiness"]
    model: str = ""
    version: int = 0


Payload = HttpRequest | GrpcRequest | Question


@dataclass(frozen=True, slots=True)
class Order:
    """What replicas of a group must carry out. An order with a `key` is kept for later replicas, one for each key."""

    number: int
    group: str
    payload: Payload
    key: str = ""

    def is_for(self, group: str) -> bool:
        """Whether replicas of that group carry it out."""
        return self.group in (EVERY_GROUP, group)


@dataclass(frozen=True, slots=True)
class Result:
    """What came of an order: the answers by replica, and the replicas that got it and did not answer."""

    answers: Mapping[str, object]
    lost: tuple[str, ...] = ()


@dataclass(slots=True)
class _Member:
    group: str
    seen: float
    received: int = 0
    owed: list[Order] = field(default_factory=list)


@dataclass(slots=True)
class _Open:
    order: Order
    waiting: set[str]
    answers: dict[str, object] = field(default_factory=dict)
    lost: list[str] = field(default_factory=list)


class Board:
    """Orders and members. `now` is any monotonic clock, in seconds."""

    def __init__(self) -> None:
        self._members: dict[str, _Member] = {}
        self._kept: dict[tuple[str, str], Order] = {}
        self._open: dict[int, _Open] = {}
        self._recent: list[Order] = []
        self._last = 0

    @property
    def last(self) -> int:
        """The number of the last order."""
        return self._last

    def members(self, group: str, now: float) -> list[str]:
        """The replicas of a group, or of all, that have polled lately."""
        return [
            name
            for name, member in self._members.items()
            if group in (EVERY_GROUP, member.group) and now - member.seen <= LOST_SECONDS
        ]

    def join(self, group: str, replica: str, known: Iterable[Order], now: float) -> list[Order]:
        """A replica has come up, or comes back with the kept orders that it knows: what it must carry out, in order.

        A control plane that has lost its state gets it back by the known orders, which it owes to the members that
        joined before.
        """
        for order in known:
            kept = self._kept.get((order.group, order.key))
            if kept is None or kept.number < order.number:
                self._kept[order.group, order.key] = order
                for member in self._members.values():
                    if order.is_for(member.group):
                        member.owed.append(order)
            self._last = max(self._last, order.number)
        self._members[replica] = _Member(group, now)
        open_orders = [each.order for each in self._open.values() if each.order.key]
        every = {order.number: order for order in (*self._kept.values(), *open_orders) if order.is_for(group)}
        return [every[number] for number in sorted(every)]

    def seen(self, replica: str, since: int, now: float) -> bool:
        """The replica polls, and has received the orders up to `since`. False for one that must join first."""
        member = self._members.get(replica)
        if member is not None:
            member.seen = now
            member.received = since
        return member is not None

    def orders(self, group: str, since: int) -> list[Order]:
        """The orders for that group with larger numbers that are still open."""
        return [order for order in self._recent if order.number > since and order.is_for(group)]

    def owes(self, replica: str) -> bool:
        """Whether others have brought kept orders since a replica joined."""
        member = self._members.get(replica)
        return member is not None and bool(member.owed)

    def hand_out(self, replica: str) -> list[Order]:
        """These orders, each once."""
        member = self._members.get(replica)
        if member is None:
            return []
        owed, member.owed = member.owed, []
        return owed

    def publish(self, group: str, payload: Payload, key: str, now: float) -> Order:
        """A new order for the members of a group as they are now."""
        self._last += 1
        order = Order(self._last, group, payload, key)
        self._open[order.number] = _Open(order, set(self.members(group, now)))
        self._recent.append(order)
        return order

    def report(self, replica: str, number: int, answer: object) -> None:
        """A replica's answer to an order; late ones are dropped."""
        entry = self._open.get(number)
        if entry is not None and replica in entry.waiting:
            entry.waiting.discard(replica)
            entry.answers[replica] = answer

    def leave(self, replica: str) -> None:
        """Ray ends a replica, which has answered its requests: no order waits for it."""
        self._members.pop(replica, None)
        for entry in self._open.values():
            entry.waiting.discard(replica)

    def expire(self, now: float) -> None:
        """Let go of the members that have not polled for LOST_SECONDS.

        An order that such a member had received is lost there. One that it had not is no failure: the member had
        ended before, and its successor carries the order out.
        """
        for replica, member in list(self._members.items()):
            if now - member.seen > LOST_SECONDS:
                for number, entry in self._open.items():
                    if replica in entry.waiting and member.received >= number:
                        entry.lost.append(replica)
                self.leave(replica)

    def waits(self, number: int) -> bool:
        """Whether an order still waits for a member. One replica that is ready answers for its group."""
        entry = self._open.get(number)
        if entry is None or any(isinstance(each, Readiness) and each.ready for each in entry.answers.values()):
            return False
        return bool(entry.waiting)

    def close(self, number: int) -> Result:
        """The result of an order, with the replicas that have not answered among the lost ones."""
        entry = self._open.pop(number)
        self._recent = [order for order in self._recent if order.number != number]
        return Result(entry.answers, (*entry.lost, *sorted(entry.waiting)))

    def keep(self, order: Order) -> None:
        """Keep an order with a key for later replicas."""
        self._kept[order.group, order.key] = order
