"""Instructions of a small request in each part of the server, counted by cachegrind: a busy machine changes nothing.

Instructions of the operating system do not count: system calls, wake-ups of threads, the network.
"""

import argparse
import asyncio
import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

_FEW, _MANY = 300, 1300
_TOTAL = re.compile(r"I\s+refs:\s+([\d,]+)")
_COMMAND = ("valgrind", "--tool=cachegrind", "--cache-sim=no", "--cachegrind-out-file=/dev/null")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("parts", nargs="*", choices=[*_PARTS, []], help="what to count (default: all, for minutes)")
    parser.add_argument("--requests", type=int, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.requests:
        _PARTS[arguments.parts[0]](arguments.requests)
        return
    for part in arguments.parts or _PARTS:
        each = (_counted(part, _MANY) - _counted(part, _FEW)) / (_MANY - _FEW)
        print(f"{part:22} {each:9,.0f} instructions a request", flush=True)


def _counted(part: str, requests: int) -> int:
    """The instructions of a process that makes so many requests."""
    command = [*_COMMAND, sys.executable, __file__, part, "--requests", str(requests)]
    ended = subprocess.run(command, capture_output=True, text=True, env={**os.environ, "PYTHONHASHSEED": "1"})
    total = _TOTAL.search(ended.stderr)
    if ended.returncode or total is None:
        raise SystemExit(f"{' '.join(command)} failed: {ended.stderr[-1000:]}")
    return int(total[1].replace(",", ""))


def _http(requests: int) -> None:
    import http_connection

    http_connection.seconds(http_connection.binary_request(), requests)


def _grpc(requests: int) -> None:
    import grpc_connection

    grpc_connection.seconds(requests)


def _python(requests: int) -> None:
    from rounds import MODELS

    _submit(MODELS, "naiad_custom", requests)


def _onnx(requests: int) -> None:
    from cases.onnx_small import write_models
    from servers import WORK

    _submit(write_models(WORK / "onnx_small"), "naiad_onnx", requests)


def _session(requests: int) -> None:
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
    for _ in range(requests):
        session.run(["OUTPUT0", "OUTPUT1"], feeds)


def _submit(repository: Path, plugin: str, requests: int) -> None:
    """Requests of `add_sub`, one at a time, through a server without frontends."""
    from importlib import import_module

    from naiad import Server

    from crossing import Pump, loop_factory

    plugins = [import_module(plugin), import_module("naiad_scheduler_dynamic")]
    options = {"model-control-mode": "explicit", "load-model": ("add_sub",)}

    async def run() -> None:
        async with Server(model_repository=[repository], plugins=plugins, options=options) as server:
            await Pump(server, "add_sub", 1, requests).run()

    with asyncio.Runner(loop_factory=loop_factory()) as runner:
        runner.run(run())


_PARTS: dict[str, Callable[[int], None]] = {
    "http": _http,
    "grpc": _grpc,
    "python": _python,
    "onnx": _onnx,
    "session": _session,
}

if __name__ == "__main__":
    main()
