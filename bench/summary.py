"""The summary of RESULTS.md and the table of the README, a line for each kind of load, from the tables of RESULTS.md.

`bench/run.py` refreshes both after each case; `python bench/summary.py` does so alone.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

PROJECT = Path(__file__).resolve().parents[1]
RESULTS, README = PROJECT / "bench" / "RESULTS.md", PROJECT / "README.md"
BEGIN, END = "<!-- summary -->", "<!-- end of summary -->"


@dataclass(frozen=True, slots=True)
class Line:
    """A line of the summary: what it says, its case, the rows that it shows, and whether the README has it too."""

    title: str
    case: str
    rows: tuple[str, ...]
    unit: str
    in_readme: bool = False
    is_smaller_better: bool = False


def _levels(what: str) -> tuple[str, ...]:
    return tuple(f"concurrency {level}: {what}" for level in (1, 16, 64))


RATE, P99, PROCESSOR = "inferences/s", "p99, ms", "server's processor time, µs each"
WRK = "concurrency 64 of wrk: inferences/s"
LINES = (
    Line("Python model, HTTP, small binary tensors, 1 / 16 / 64 at once", "binary", _levels(RATE), RATE, True),
    Line("the same: p99", "binary", _levels(P99), "ms", True, True),
    Line("the same: processor time of a request", "binary", _levels(PROCESSOR), "µs", True, True),
    Line("Python model, HTTP, JSON bodies", "json", ("requests/s",), "requests/s", True),
    Line(
        "Python model, HTTP, tensors of 600 KB / 4 MB",
        "large",
        (f"600 KB, concurrency 8: {RATE}", f"4 MB, concurrency 4: {RATE}"),
        RATE,
        True,
    ),
    Line(
        "the same over gRPC",
        "grpc-large",
        (f"600 KB, concurrency 8: {RATE}", f"4 MB, concurrency 4: {RATE}"),
        RATE,
        True,
    ),
    Line("tensors of 600 KB in system shared memory", "shm", (f"HTTP, 600 KB, concurrency 8: {RATE}",), RATE),
    Line(
        "1,000 responses of one request, HTTP / gRPC",
        "stream",
        ("HTTP generate_stream: responses/s", "gRPC ModelStreamInfer: responses/s"),
        "responses/s",
        True,
    ),
    Line("ensemble of three Python steps, HTTP, 1 / 16 / 64 at once", "ensemble", _levels(RATE), RATE, True),
    Line("Python model, gRPC, small binary tensors, 1 / 16 / 64 at once", "grpc", _levels(RATE), RATE, True),
    Line("ONNX model under load, HTTP, beside `session.run` alone in a loop", "onnx", (WRK,), RATE),
    Line("PyTorch model under load, HTTP, beside the module alone in a loop", "torch", (WRK,), RATE),
    Line(
        "start to ready / memory when ready, two Python models",
        "footprint",
        ("start to ready with the Python models, s", "resident memory when ready, MB"),
        "s / MB",
        True,
        True,
    ),
)


def refresh_summaries(results: Path = RESULTS, readme: Path = README) -> None:
    """Write the summary into RESULTS.md and the table into the README. Raises KeyError for a row that is missing."""
    text = results.read_text(encoding="utf-8")
    _replace(results, summary(text))
    _replace(readme, table_of_readme(text))


def summary(text: str) -> str:
    """Lines with the medians and ratios of the tables in `text`, the content of RESULTS.md."""
    rows = ["| what | better | Naiad | beside it | ratio |", "|---|---|---|---|---|"]
    for line in LINES:
        medians, ratios, reference = _values(text, line)
        better = "less" if line.is_smaller_better else "more"
        columns = [f"{_joined(each)} {line.unit}" for each in zip(*medians, strict=True)]
        beside = f"{columns[1]} ({reference})"
        rows.append(f"| {line.title} | {better} | {columns[0]} | {beside} | {_joined(ratios)} × |")
    return "\n".join(rows)


def table_of_readme(text: str) -> str:
    """The ratios to the peer alone, for the README."""
    rows = []
    for line in LINES:
        if line.in_readme:
            _, ratios, reference = _values(text, line)
            better = "less is better" if line.is_smaller_better else "more is better"
            rows.append(f"| {line.title} ({better}) | {_joined(ratios)} × |")
    return "\n".join([f"| beside {reference}, the same model and load | ratio |", "|---|---|", *rows])


def _values(text: str, line: Line) -> tuple[Sequence[tuple[str, str]], Sequence[str], str]:
    """The medians of Naiad and of the reference for each row, the ratios, and the name of the reference."""
    section = re.search(f"<!-- case {line.case} -->(.*?)<!-- end of {line.case} -->", text, re.DOTALL)
    if section is None:
        raise KeyError(f"RESULTS.md has no case '{line.case}'")
    lines = re.findall(r"^\|.*\|$", section[1], re.MULTILINE)
    table = [[cell.strip() for cell in row.split("|")[1:-1]] for row in lines]
    by_label = {row[0]: row for row in table}
    missing = [row for row in line.rows if row not in by_label]
    if missing:
        raise KeyError(f"the case '{line.case}' of RESULTS.md has no row '{missing[0]}'")
    chosen = [by_label[row] for row in line.rows]
    medians = [(_median(row[1]), _median(row[2])) for row in chosen]
    ratios = [f"{float(row[3]):.2g}" for row in chosen]
    return medians, ratios, table[0][2].partition(":")[0]


def _median(cell: str) -> str:
    return cell.partition(" (")[0]


def _joined(values: Sequence[str]) -> str:
    return " / ".join(values)


def _replace(path: Path, block: str) -> None:
    """Put the block between the marks of the file."""
    text = path.read_text(encoding="utf-8")
    before, begin, rest = text.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not (begin and end):
        raise KeyError(f"'{path}' has no {BEGIN} and {END}")
    path.write_text(f"{before}{BEGIN}\n{block}\n{END}{after}", encoding="utf-8")


if __name__ == "__main__":
    refresh_summaries()
