"""Prints what the house measures of itself, and fails where a limit is missed: `python -m tests.house`.

With `--list TEXT` it prints what was counted for the figures whose names contain the text.
"""

import argparse
import sys
from collections.abc import Iterable, Iterator, Mapping

from .figures import Budget, Figure, budgets, measure, settings


def main(arguments: list[str] | None = None) -> int:
    """Print the figures, or what they count. Returns the exit status."""
    parser = argparse.ArgumentParser(prog="python -m tests.house", description=__doc__)
    parser.add_argument("--list", metavar="TEXT", help="print what the figures of this name count")
    chosen = parser.parse_args(arguments).list
    table = settings()
    figures = list(measure(table["pure"]))
    if chosen is not None:
        print("\n".join(item for figure in figures if chosen in figure.name for item in figure.items))
        return 0
    allowed = budgets(table)
    print("\n".join(report(figures, allowed)))
    missed = list(complaints(figures, allowed))
    print("\n".join(missed), file=sys.stderr, end="\n" if missed else "")
    return 1 if missed else 0


def report(figures: Iterable[Figure], allowed: Mapping[str, Budget]) -> Iterator[str]:
    """The figures as a table."""
    yield f"{'figure':<60}{'today':>8}{'limit':>8}{'target':>8}"
    for figure in figures:
        budget = allowed.get(figure.name)
        limit, target = (budget.limit, budget.target) if budget is not None else ("", "")
        yield f"{figure.name:<60}{figure.value:>8}{limit:>8}{target:>8}"


def complaints(figures: Iterable[Figure], allowed: Mapping[str, Budget]) -> Iterator[str]:
    """A sentence for each limit that is missed, and for each budget without a figure."""
    values = {figure.name: figure.value for figure in figures}
    for name, budget in allowed.items():
        if name not in values:
            yield f"[tool.house.budgets] in pyproject.toml names '{name}', which nothing measures."
        elif values[name] > budget.limit:
            yield (
                f"{name}: {values[name]}, the limit is {budget.limit}. "
                f"python -m tests.house --list '{name}' says which; lower limits are welcome, higher ones are not."
            )


if __name__ == "__main__":
    sys.exit(main())
