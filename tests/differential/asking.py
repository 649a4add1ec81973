"""Asks a server one case after the other, and starts it again where one has killed it."""

import socket
import time
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager

from .answers import CLOSED, GONE, Answer, Case, Ports

DIED = Answer("the server died")
_DEAD_WITHIN = 1.0
"""Seconds after which a server that closed a connection goes on living: one that dies is gone within 20 ms."""


def lives_on(ports: Ports) -> bool:
    """Whether a server that closed a connection still listens some time later."""
    deadline = time.monotonic() + _DEAD_WITHIN
    while time.monotonic() < deadline:
        try:
            socket.create_connection(("127.0.0.1", ports.http), timeout=_DEAD_WITHIN).close()
        except OSError:
            return False
        time.sleep(0.02)
    return True


def answers(
    serve: Callable[[], AbstractContextManager[Ports]],
    cases: Sequence[Case],
    lives_on: Callable[[Ports], bool] = lives_on,
) -> list[Answer]:
    """The answers in the order of the cases; DIED where the server was gone afterwards.

    Raises RuntimeError when a server is gone that has not been asked anything.
    """
    results: list[Answer] = []
    while len(results) < len(cases):
        with serve() as ports:
            results += _until_it_dies(ports, cases[len(results) :], lives_on)
    return results


def _until_it_dies(ports: Ports, cases: Sequence[Case], lives_on: Callable[[Ports], bool]) -> list[Answer]:
    results: list[Answer] = []
    for case in cases:
        answer = case.ask(ports)
        if answer.status == CLOSED and not lives_on(ports):
            return [*results, DIED]
        if answer.status != GONE:
            results.append(answer)
        elif results:
            return [*results[:-1], DIED]
        else:
            raise RuntimeError(f"the server was gone before '{case.key}'")
    return results
