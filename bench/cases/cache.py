"""The response cache: what it costs where nothing repeats, and what it gives where everything does."""

import functools
from collections.abc import Sequence
from pathlib import Path

from cases.case import Case
from cases.mlps import CONCURRENCY
from frameworks import FRAMEWORKS
from load import with_cost, wrk
from report import Goal, Row
from rounds import Numbers, Run, by_label
from servers import WORK, Naiad, Running

_SCRIPT = Path(__file__).resolve().parent.parent / "binary_tensors.lua"
_CACHE = ("--cache-config=local,size=268435456",)
_MODELS = {"mlp": "", "mlp_cached": "response_cache { enable: true }"}
_REPEATING, _COST, _LATENCY = "all the same: inferences/s", "server's processor time, µs each", "p99, ms"
_LABEL = "all different: inferences/s"


def measure(run: Run) -> Sequence[Row]:
    repository = WORK / "cache"
    for model, more in _MODELS.items():
        FRAMEWORKS["onnx"].build(repository / model, more=f"dynamic_batching {{}}\n{more}")
    seen: dict[str, list[Numbers]] = {model: [] for model in _MODELS}
    for number in range(2 * run.rounds):
        with Naiad().serve(repository, *_CACHE) as running:
            models = list(_MODELS) if number % 2 == 0 else list(reversed(_MODELS))
            for model in models:
                seen[model].append(_loaded(running, model, seconds=3 if run.quick else 8))
    plain, cached = by_label(seen["mlp"]), by_label(seen["mlp_cached"])
    return [
        Row(_LABEL, cached[_LABEL], plain[_LABEL], Goal(least=0.97, of_ratio=True)),
        Row(f"all different: {_LATENCY}", cached[_LATENCY], plain[_LATENCY]),
        Row(f"all different: {_COST}", cached[_COST], plain[_COST]),
        Row(_REPEATING, cached[_REPEATING], plain[_REPEATING], Goal(least=3.0, of_ratio=True)),
    ]


def _loaded(running: Running, model: str, seconds: int) -> Numbers:
    url = f"http://127.0.0.1:{running.port}/v2/models/{model}/infer"
    wrk(url, _SCRIPT, CONCURRENCY, 1, "different")
    different = functools.partial(wrk, url, _SCRIPT, CONCURRENCY, seconds, "different")
    load, cost = with_cost(running, model, different)
    same = wrk(url, _SCRIPT, CONCURRENCY, seconds)
    return {_LABEL: load.per_second, _LATENCY: load.p99_milliseconds, _COST: cost, _REPEATING: same.per_second}


CASE = Case(
    "cache",
    "The response cache",
    "The MLP of the case above, once with `response_cache { enable: true }` and once without, on one server with "
    f"`{' '.join(_CACHE)}`; wrk with one thread and {CONCURRENCY} connections posts tensors over HTTP: first some "
    "that never repeat, so that the cache is filled and emptied all the time, then the same one again and again. There "
    "are twice as many rounds as elsewhere, because the difference is small.",
    measure,
    reference="without cache",
)
