"""Half an hour of mixed and heavy traffic against one server: what it keeps of it in memory, descriptors and log.

Fails when the memory grows by more than 0.2 MB a minute after the first ten minutes.
"""

import argparse
import asyncio
import re
import shutil
import tempfile
from math import sqrt
from pathlib import Path
from statistics import fmean, linear_regression

from cases.soak import settled
from heavy_traffic import HeavyTraffic
from report import Goal, Row, table
from rounds import MODELS
from servers import WORK, Naiad, Running

_TORTURE_MODELS = Path(__file__).resolve().parent / "torture" / "models"
_OPTIONS = ("--model-control-mode=explicit", "--load-model=*")
_WARM_UP = 1 / 3
"""The part of the time that is not measured: ten minutes of thirty."""
_EXPECTED = re.compile(r"instance 'raises_0' failed a batch|(HTTP 504|DEADLINE_EXCEEDED): .* model 'slow' |is STARTING")
_LOUD = re.compile(r"^[WEF]\d{4} ")


def main() -> int:
    arguments = _arguments()
    seconds = arguments.minutes * 60
    with tempfile.TemporaryDirectory(prefix="soak-") as folder:
        repository = _repository(Path(folder))
        with Naiad().serve(repository, *_OPTIONS) as running:
            rows, done = _soak(running, seconds, arguments.seed)
        unexpected = [line for line in (WORK / "naiad.log").read_text().splitlines() if _is_unexpected(line)]
    rows.append(Row("unexpected lines in the log", (len(unexpected),), (), Goal(most=0)))
    wrong = {what: count for what, count in done.items() if _is_wrong(what)}
    rows.append(Row("requests with an unexpected end", (sum(wrong.values()),), (), Goal(most=0)))
    print("\n".join(f"{count:8,} {what}" for what, count in sorted(done.items())))
    print(table(rows, "at the end"))
    print("\n".join(unexpected[:20]))
    print(wrong or "")
    return 1 if any(row.cells()[-1] == "no" for row in rows) else 0


def _soak(running: Running, seconds: float, seed: int) -> tuple[list[Row], dict[str, int]]:
    """Warm up, settle, measure, settle."""
    first = HeavyTraffic(running, seed)
    _show(asyncio.run(first.run(seconds * _WARM_UP)))
    before = settled(running)
    second = HeavyTraffic(running, seed + 1)
    samples = asyncio.run(second.run(seconds * (1 - _WARM_UP)))
    _show(samples)
    after = settled(running)
    slope, error = _slope(samples)
    rows = [
        Row("memory, MB a minute", (slope,), (), Goal(most=0.2)),
        Row("standard error of that", (error,), ()),
        Row("memory at the end of the warm-up and of the traffic, MB", (before[0],), (after[0],)),
        Row("threads left over", (after[1] - before[1],), (), Goal(most=0)),
        Row("descriptors left over", (after[2] - before[2],), (), Goal(most=0)),
        Row("requests that the metrics say are still in flight", (after[3],), (), Goal(most=0)),
    ]
    return rows, dict(first.done + second.done)


def _slope(samples: list[tuple[float, float]]) -> tuple[float, float]:
    """The growth in MB a minute by least squares, and its standard error."""
    minutes, sizes = [moment / 60 for moment, _ in samples], [size for _, size in samples]
    fit = linear_regression(minutes, sizes)
    rest = sum((size - fit.intercept - fit.slope * minute) ** 2 for minute, size in zip(minutes, sizes, strict=True))
    spread = sum((minute - fmean(minutes)) ** 2 for minute in minutes)
    return fit.slope, sqrt(rest / max(1, len(samples) - 2) / spread)


def _show(samples: list[tuple[float, float]]) -> None:
    print("resident memory, MB:", " ".join(f"{size:.1f}" for _, size in samples), flush=True)


def _repository(folder: Path) -> Path:
    repository = folder / "models"
    ignore = shutil.ignore_patterns("__pycache__")
    for name in ("add_sub", "identity", "stream"):
        shutil.copytree(MODELS / name, repository / name, ignore=ignore)
    shutil.copytree(MODELS / "add_sub", repository / "add_sub_2", ignore=ignore)
    for name in ("raises", "slow", "calls"):
        shutil.copytree(_TORTURE_MODELS / name, repository / name, ignore=ignore)
    return repository


def _is_unexpected(line: str) -> bool:
    return bool(_LOUD.match(line) and not _EXPECTED.search(line)) or line.startswith("Traceback")


def _is_wrong(what: str) -> bool:
    """Whether a request of that kind was not to end so."""
    kind, _, end = what.partition(": ")
    expected = _ENDS.get(kind, ("200", "OK", "left", ""))
    return end not in expected


_ENDS = {
    "unknown model": ("404",),
    "wrong name": ("400",),
    "model fails": ("500",),
    "deadline": ("504",),
    "grpc unknown model": ("NOT_FOUND",),
    "grpc wrong name": ("INVALID_ARGUMENT",),
    "grpc model fails": ("INTERNAL",),
    "grpc deadline": ("DEADLINE_EXCEEDED",),
}
"""How requests end that are not to be answered well, by kind."""


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=30.0, help="how long (default: 30); a third is warm-up")
    parser.add_argument("--seed", type=int, default=1)
    return parser.parse_args()


if __name__ == "__main__":
    raise SystemExit(main())
