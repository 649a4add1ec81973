"""Asks a server one case after the other, and starts it again where one has killed it."""

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager

from .answers import GONE, Answer, Case, Ports

DIED = Answer("the server died")


def answers(serve: Callable[[], AbstractContextManager[Ports]], cases: Sequence[Case]) -> list[Answer]:
    """The answers in the order of the cases; DIED where the server was gone afterwards.

    Raises RuntimeError when a server is gone that has not been asked anything.
    """
    found: list[Answer] = []
    while len(found) < len(cases):
        with serve() as ports:
            found += _until_it_dies(ports, cases[len(found) :])
    return found


def _until_it_dies(ports: Ports, cases: Sequence[Case]) -> list[Answer]:
    found: list[Answer] = []
    for case in cases:
        answer = case.ask(ports)
        if answer.status != GONE:
            found.append(answer)
        elif found:
            return [*found[:-1], DIED]
        else:
            raise RuntimeError(f"the server was gone before '{case.key}'")
    return found
