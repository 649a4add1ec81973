"""What a case is: a name, what it measures in words, and the function that measures it."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from report import Row
from rounds import Run

ADD_SUB = {"add_sub": "", "add_sub_on_loop": ", on the event loop"}
"""The same model code twice, and what distinguishes its rows."""


@dataclass(frozen=True, slots=True)
class Case:
    """`reference` is what Naiad is held against, as a column of the table; `measure` raises LoadError if it cannot."""

    name: str
    title: str
    text: str
    measure: Callable[[Run], Sequence[Row]]
    reference: str = "Triton"
