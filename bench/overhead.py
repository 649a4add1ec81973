"""What an execution costs above the framework's own call: batch 1, no batching, the whole server but the frontends.

Each request is timed from `Server.submit` to its answer, between a call of the framework by itself and a call of the
plugin's instance by itself, so that a machine that slows down slows all three; the medians are held against each other.
"""

import argparse
import asyncio
import importlib
import json
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory

import numpy as np
from naiad import Request, Response, Server, Tensor
from naiad.backend import Batch, Instance, ModelContext, Placement
from naiad.errors import NaiadError
from naiad_config import ModelInstanceGroup
from naiad_config.text import parse_text

from crossing import loop_factory
from frameworks import FRAMEWORKS
from frameworks.framework import Call, Framework

_WIDTHS = (16, 16)
_WARM_UP = 200


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("framework", choices=FRAMEWORKS)
    parser.add_argument("--requests", type=int, default=5_000)
    parser.add_argument("--on-loop", action="store_true", help="with the parameter execute_on: event_loop")
    arguments = parser.parse_args()
    framework = FRAMEWORKS[arguments.framework]
    more = 'parameters { key: "execute_on" value { string_value: "event_loop" } }' if arguments.on_loop else ""
    with TemporaryDirectory() as folder, asyncio.Runner(loop_factory=loop_factory()) as runner:
        path = framework.build(Path(folder) / "m", _WIDTHS, more)
        print(json.dumps(runner.run(_measure(framework, path, arguments.requests))))


async def _measure(framework: Framework, path: Path, requests: int) -> dict[str, float]:
    """Medians in microseconds: of the framework's call, and by how much the others are above it."""
    plugin = importlib.import_module(framework.plugin)
    array = np.arange(_WIDTHS[0], dtype=np.float32).reshape(1, -1)
    request = Request("m", {"x": Tensor.of("x", array)})
    repository = path.parent.parent.parent
    own, instance = framework.opened(path), instance_of(plugin, path)
    seconds: dict[str, list[float]] = {"own": [], "instance": [], "server": []}
    async with Server(model_repository=[repository], plugins=[plugin]) as server:
        for number in range(_WARM_UP + requests):
            seen = await _once(own, instance, server, array, request)
            if number >= _WARM_UP:
                for name, value in zip(seconds, seen, strict=True):
                    seconds[name].append(value)
    instance.close()
    medians = {name: median(values) * 1e6 for name, values in seconds.items()}
    return {"own": medians["own"]} | {name: medians[name] - medians["own"] for name in ("instance", "server")}


async def _once(
    own: Call, instance: Instance, server: Server, array: np.ndarray, request: Request
) -> tuple[float, float, float]:
    clock = time.perf_counter
    own(array)  # not timed: the processor has slept, and its caches are cold
    started = clock()
    own(array)
    called = clock()
    instance.execute(Batch([request], [1]))
    executed = clock()
    submitted, answered = await _submitted(server, request)
    return called - started, executed - called, answered - submitted


async def _submitted(server: Server, request: Request) -> tuple[float, float]:
    """When a request was submitted, and when it was answered. Raises the error that it is answered with."""
    done: asyncio.Future[float] = asyncio.get_running_loop().create_future()

    def take(outcome: Response | NaiadError) -> None:
        if isinstance(outcome, NaiadError):
            done.set_exception(outcome)
        else:
            done.set_result(time.perf_counter())

    started = time.perf_counter()
    server.submit(request, take)
    return started, await done


def instance_of(plugin: object, path: Path) -> Instance:
    """The instance that a plugin makes of the model in that file, with the configuration beside its version."""
    hook: Callable[[], list[object]] = plugin.naiad_backends  # type: ignore[attr-defined]
    (backend,) = hook()
    folder = path.parent.parent
    config = parse_text((folder / "config.pbtxt").read_text())
    model = backend.load(ModelContext(config, 1, folder, path.parent))  # type: ignore[attr-defined]
    return model.instantiate(Placement("m_0", "CPU", 0, ModelInstanceGroup()))  # type: ignore[no-any-return]


if __name__ == "__main__":
    main()
