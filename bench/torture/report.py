"""One line of text a case: its figures beside their bounds, `!` behind what was not held."""

from bench.torture.case import Case, Figure
from bench.torture.running import Result

_COMMON = ("kept MB", "peak MB", "wait s", "stop s", "log kB")


def header() -> str:
    cells = "".join(f"{name:>14}" for name in _COMMON)
    return f"{'case':<34}{cells}  verdict, further figures (figure/bound)"


def line(case: Case, result: Result) -> str:
    """The line of a case."""
    by_name = {figure.name: figure for figure in result.figures}
    cells = "".join(f"{_cell(by_name.get(name)):>14}" for name in _COMMON)
    rest = [figure for figure in result.figures if figure.name not in _COMMON and (figure.value or not figure.holds)]
    further = ", ".join(_named(figure) for figure in rest)
    verdict = "ok" if result.holds else "FAILED"
    parts = [part for part in (verdict, further, result.error) if part]
    return f"{case.name:<34}{cells}  {'; '.join(parts)}"


def _cell(figure: Figure | None) -> str:
    if figure is None:
        return "-"
    return f"{_number(figure.value)}/{_number(figure.most)}{'' if figure.holds else '!'}"


def _named(figure: Figure) -> str:
    note = f" ({figure.note})" if figure.note else ""
    return f"{figure.name} {_cell(figure)}{note}"


def _number(value: float) -> str:
    return f"{value:.0f}" if abs(value) >= 10 or value == int(value) else f"{value:.1f}"
