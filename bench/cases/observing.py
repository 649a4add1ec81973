"""What being observed costs: metrics and traces, switched on and off."""

from collections.abc import Sequence

from cases.case import ADD_SUB, Case
from report import Goal, Row
from rounds import MODELS, Run, by_label
from servers import WORK, Naiad

_LEAST = 0.97
"""The part of the throughput without metrics that must be left with them."""


def measure(run: Run) -> Sequence[Row]:
    trace = WORK / "trace.json"
    settings = {
        "on": (),
        "off": ("--allow-metrics=false",),
        "traced": (
            "--trace-config=level=TIMESTAMPS",
            "--trace-config=rate=100",
            f"--trace-config=triton,file={trace}",
        ),
    }
    seen: dict[str, list[dict[str, float]]] = {name: [] for name in settings}
    for number in range(2 * run.rounds):
        names = list(settings) if number % 2 == 0 else list(reversed(settings))
        for name in names:
            with Naiad().serve(MODELS, *settings[name]) as running:
                load = {model: run.generator(running.port, model, 64).per_second for model in ADD_SUB}
            seen[name].append({f"concurrency 64{message}": load[model] for model, message in ADD_SUB.items()})
    numbers = {name: by_label(rounds) for name, rounds in seen.items()}
    rows = []
    for message in ADD_SUB.values():
        label = f"concurrency 64{message}"
        rows.append(
            Row(
                f"{label}, with metrics: inferences/s",
                numbers["on"][label],
                numbers["off"][label],
                Goal(least=_LEAST, of_ratio=True),
            )
        )
        rows.append(
            Row(f"{label}, one request in 100 traced: inferences/s", numbers["traced"][label], numbers["off"][label])
        )
    return rows


CASE = Case(
    "observing",
    "Metrics and traces",
    "The add/sub models over HTTP. Metrics are on and traces off by default; the reference is the same server with "
    "`--allow-metrics=false`. Twice as many rounds as elsewhere, because the difference is small.",
    measure,
    reference="without metrics",
)
