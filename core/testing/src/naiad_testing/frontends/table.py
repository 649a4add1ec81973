"""Tables of behaviours: checks by name, each with a stage and optionally the values of a case."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeVar

from naiad_testing.frontends.stage import Stage

_Check = TypeVar("_Check", bound=Callable[..., None])


@dataclass(frozen=True)
class Behaviour:
    """A sentence about every frontend, and its check, which raises AssertionError where it is not true."""

    name: str
    check: Callable[[Stage], None]

    def __str__(self) -> str:
        return self.name


class Table:
    """The behaviours of one subject, in the order in which they are defined."""

    def __init__(self) -> None:
        self._behaviours: list[Behaviour] = []

    def __iter__(self) -> Iterator[Behaviour]:
        return iter(self._behaviours)

    def behaviour(self, check: _Check) -> _Check:
        """Add a check as one behaviour; its name is the function's."""
        self._behaviours.append(Behaviour(check.__name__.replace("_", " "), check))
        return check

    def cases(self, cases: Mapping[str, tuple[Any, ...]]) -> Callable[[_Check], _Check]:
        """Add a check as one behaviour for each case, whose values are passed behind the stage."""

        def add(check: _Check) -> _Check:
            for name, values in cases.items():
                bound = partial(_check, check, values)
                self._behaviours.append(Behaviour(f"{check.__name__.replace('_', ' ')} [{name}]", bound))
            return check

        return add


def _check(check: Callable[..., None], values: tuple[Any, ...], stage: Stage) -> None:
    check(stage, *values)
