"""What a case measured, as a table, and the file that keeps the tables."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median


@dataclass(frozen=True, slots=True)
class Goal:
    """What Naiad must reach: a value or, with `of_ratio`, a ratio to the reference, between `least` and `most`."""

    least: float | None = None
    most: float | None = None
    of_ratio: bool = False

    def __str__(self) -> str:
        sign, bound = ("≥", self.least) if self.least is not None else ("≤", self.most)
        return f"{sign} {bound:g}{' ×' if self.of_ratio else ''}"

    def met_by(self, value: float | None) -> str:
        """`yes`, `no`, or `–` where there is nothing to compare."""
        if value is None:
            return "–"
        above = self.least is None or value >= self.least
        below = self.most is None or value <= self.most
        return "yes" if above and below else "no"


@dataclass(frozen=True, slots=True)
class Row:
    """One number: what it is with its unit, Naiad's values round by round, the reference's, and the goal."""

    label: str
    naiad: tuple[float, ...]
    reference: tuple[float, ...] = ()
    goal: Goal | None = None

    @property
    def ratio(self) -> float | None:
        """Naiad's median over the reference's."""
        return median(self.naiad) / median(self.reference) if self.reference else None

    def cells(self) -> list[str]:
        """The row as text."""
        goal = self.goal
        judged = self.ratio if goal is not None and goal.of_ratio else median(self.naiad)
        return [
            self.label,
            _with_spread(self.naiad),
            _with_spread(self.reference) if self.reference else "–",
            f"{self.ratio:.2f}" if self.ratio is not None else "–",
            str(goal) if goal is not None else "",
            goal.met_by(judged) if goal is not None else "",
        ]


def table(rows: Sequence[Row], reference: str) -> str:
    """A Markdown table of medians with their spread (least–most), aligned to be read on a terminal too."""
    head = ["measured", "Naiad: median (spread)", f"{reference}: median (spread)", "ratio", "goal", "met"]
    cells = [head, *(row.cells() for row in rows)]
    widths = [max(len(row[column]) for row in cells) for column in range(len(head))]
    lines = [
        "| " + " | ".join(text.ljust(width) for text, width in zip(row, widths, strict=True)) + " |" for row in cells
    ]
    lines.insert(1, "|" + "|".join("-" * (width + 2) for width in widths) + "|")
    return "\n".join(lines)


def refresh(path: Path, name: str, section: str) -> None:
    """Put the section of that case into the file, in place of an older one or at the end."""
    text = path.read_text(encoding="utf-8")
    begin, end = f"<!-- case {name} -->", f"<!-- end of {name} -->"
    block = f"{begin}\n{section.strip()}\n{end}"
    match = re.search(f"{re.escape(begin)}.*?{re.escape(end)}", text, re.DOTALL)
    before, after = (text[: match.start()], text[match.end() :]) if match else (f"{text.rstrip()}\n\n", "\n")
    path.write_text(before + block + after, encoding="utf-8")


def _with_spread(values: Sequence[float]) -> str:
    if len(values) == 1:
        return _number(values[0])
    return f"{_number(median(values))} ({_number(min(values))}–{_number(max(values))})"


def _number(value: float) -> str:
    if value >= 1000:
        return f"{value:,.0f}"
    return f"{value:.1f}" if value >= 10 else f"{value:.3g}"
