"""Instructions of a small request in each part of the server, counted by callgrind: a busy machine changes nothing.

Instructions of the operating system do not count: system calls, wake-ups of threads, the network.
"""

import argparse
import asyncio
import functools
import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from naiad_kit.access_log import AccessLog

_WARM_UP, _REQUESTS = 320, 960
_TOTAL = re.compile(r"Collected : (\d+)")
_COMMAND = ("valgrind", "--tool=callgrind", "--instr-atstart=no", "--callgrind-out-file=/dev/null")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("parts", nargs="*", choices=[*_PARTS, []], help="what to count (default: all)")
    parser.add_argument("--counted", action="store_true", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.counted:
        _PARTS[arguments.parts[0]]()
        return
    for part in arguments.parts or _PARTS:
        print(f"{part:22} {_instructions(part) / _REQUESTS:9,.0f} instructions a request", flush=True)


def _instructions(part: str) -> int:
    """The instructions that a process counts for that part."""
    command = [*_COMMAND, sys.executable, __file__, part, "--counted"]
    ended = subprocess.run(command, capture_output=True, text=True, env={**os.environ, "PYTHONHASHSEED": "1"})
    total = _TOTAL.search(ended.stderr)
    if ended.returncode or total is None:
        raise SystemExit(f"{' '.join(command)} failed: {ended.stderr[-1000:]}")
    return int(total[1])


@contextmanager
def _counting() -> Iterator[None]:
    """Valgrind counts the instructions of this process during the block alone."""
    control = ["callgrind_control", "-i", "on", str(os.getpid())]
    subprocess.run(control, check=True, stdout=subprocess.DEVNULL)
    yield
    subprocess.run([*control[:2], "off", control[3]], check=True, stdout=subprocess.DEVNULL)


def _http(form: str = "") -> None:
    import http_connection

    request, access = http_connection.binary_request(), _access_log(form)
    http_connection.seconds(request, _WARM_UP, access)
    with _counting():
        http_connection.seconds(request, _REQUESTS, access)


def _grpc(form: str = "") -> None:
    import grpc_connection

    access = _access_log(form)
    grpc_connection.seconds(_WARM_UP, access)
    with _counting():
        grpc_connection.seconds(_REQUESTS, access)


def _access_log(form: str) -> "AccessLog | None":
    """A log of that form that writes to nowhere, None for ""."""
    from naiad_kit.access_log import AccessLog

    return AccessLog(form, lambda _: None).start() if form else None


def _python(outstanding: int = 1) -> None:
    from rounds import MODELS

    _submit(MODELS, "naiad_custom", outstanding)


def _onnx(outstanding: int = 1) -> None:
    from cases.onnx_small import write_models
    from servers import WORK

    _submit(write_models(WORK / "onnx_small"), "naiad_onnx", outstanding)


def _session() -> None:
    """What `session.run` costs, which is in the part `onnx` too."""
    import numpy as np
    import onnxruntime

    from cases.onnx_small import write_models
    from servers import WORK

    path = write_models(WORK / "onnx_small") / "add_sub" / "1" / "model.onnx"
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
    feeds = {name: np.ones((1, 16), np.float32) for name in ("INPUT0", "INPUT1")}
    for _ in range(_WARM_UP):
        session.run(["OUTPUT0", "OUTPUT1"], feeds)
    with _counting():
        for _ in range(_REQUESTS):
            session.run(["OUTPUT0", "OUTPUT1"], feeds)


def _submit(repository: Path, plugin: str, outstanding: int) -> None:
    """Requests of `add_sub`, so many at once, through a server without frontends."""
    from importlib import import_module

    from naiad import Server

    from crossing import Pump, loop_factory

    plugins = [import_module(plugin), import_module("naiad_scheduler_dynamic")]
    options = {"model-control-mode": "explicit", "load-model": ("add_sub",)}

    async def run() -> None:
        async with Server(model_repository=[repository], plugins=plugins, options=options) as server:
            await Pump(server, "add_sub", outstanding, _WARM_UP).run()
            with _counting():
                await Pump(server, "add_sub", outstanding, _REQUESTS).run()

    with asyncio.Runner(loop_factory=loop_factory()) as runner:
        runner.run(run())


_PARTS: dict[str, Callable[[], None]] = {
    "http": _http,
    "grpc": _grpc,
    "http-logged": functools.partial(_http, "text"),
    "grpc-logged": functools.partial(_grpc, "text"),
    "python": _python,
    "python-16": functools.partial(_python, 16),
    "onnx": _onnx,
    "onnx-16": functools.partial(_onnx, 16),
    "session": _session,
}
"""Parts with a number have so many requests outstanding, of which batches are made; the others one.

Those that are logged have a line of the access log for each request.
"""

if __name__ == "__main__":
    main()
