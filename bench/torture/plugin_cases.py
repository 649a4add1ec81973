"""Plugins that misbehave: a response cache that finds nonsense, raises, exits, or does not answer."""

import time
from collections.abc import Callable, Sequence
from pathlib import Path

from bench.torture.case import Bounds, Case, Figure
from bench.torture.server import Setup, Target
from bench.torture.wire import ask, infer_path, json_infer, tensor

_PLUGINS = Path(__file__).resolve().parent / "plugins"
_REQUESTS = 12


def cached_requests(most_seconds: float) -> Callable[[Target], Sequence[Figure]]:
    """12 requests to a model whose answers are cached, all of which must be answered within so many seconds."""

    def attack(target: Target) -> Sequence[Figure]:
        started, good = time.monotonic(), 0
        for number in range(_REQUESTS):
            body = json_infer(tensor("INPUT0", "FP32", [1], [number]))
            good += ask(target.ports.http, "POST", infer_path("cached"), body, timeout=8).status == 200
            ask(target.ports.metrics, "GET", "/metrics")
        took = time.monotonic() - started
        return [Figure("not answered", _REQUESTS - good, 0), Figure("all in s", took, most_seconds)]

    return attack


def _setup(mode: str) -> Setup:
    options = (f"--cache-config=torture,mode={mode}",)
    return Setup(models=("add_sub", "cached"), options=options, environment={"PYTHONPATH": str(_PLUGINS)})


CASES = (
    *(Case(f"plugin-cache-that-{mode}", cached_requests(4), Bounds(), _setup(mode)) for mode in ("raises", "exits")),
    Case("plugin-cache-of-nonsense", cached_requests(4), Bounds(), _setup("wrong")),
    Case("plugin-cache-that-hangs", cached_requests(15), Bounds(), _setup("hangs")),
)
