"""Prints every Python call of one small request over HTTP or gRPC, file by file, as `sys.setprofile` sees them.

With `--picture FILE` it draws them too.

The number of calls is what a request costs in Python apart from what its data cost, and does not depend on how busy the
machine is: it shows what a change adds to the way of a request.
"""

import argparse
import asyncio
import json
import socket
import sys
import tempfile
import threading
import types
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
from naiad import Server

import naiad_custom
import naiad_grpc
import naiad_http
import naiad_scheduler_dynamic
from path_picture import Call, picture

MODEL = "echo"
_CONFIG = """
backend: "python"
max_batch_size: 64
dynamic_batching {}
instance_group [ { kind: KIND_CPU } ]
input [ { name: "INPUT0" data_type: TYPE_FP32 dims: [ 16 ] } ]
output [ { name: "OUTPUT0" data_type: TYPE_FP32 dims: [ 16 ] } ]
"""
_CODE = """
import triton_python_backend_utils as pb_utils


class TritonPythonModel:
    def execute(self, requests):
        inputs = [pb_utils.get_input_tensor_by_name(request, "INPUT0").as_numpy() for request in requests]
        return [pb_utils.InferenceResponse(output_tensors=[pb_utils.Tensor("OUTPUT0", each)]) for each in inputs]
"""
_WARM_UP_REQUESTS = 50
_RECORDINGS = 25
_ARRAY = np.arange(16, dtype=np.float32).reshape(1, 16)


@dataclass(slots=True)
class Recorder:
    """Records the calls of all threads but those of the client while `is_on` is set."""

    is_on: bool = False
    calls: list[Call] = field(default_factory=list)
    ignored_threads: set[int] = field(default_factory=set)

    def profile(self, frame: types.FrameType, event: str, _argument: object) -> None:
        """What `sys.setprofile` calls."""
        if self.is_on and event == "call" and threading.get_ident() not in self.ignored_threads:
            distribution, file = _home_of(_file_of(frame))
            self.calls.append(Call(_thread_name(), distribution, file, _function_of(frame)))

    def stop(self) -> None:
        """Record no longer."""
        self.is_on = False


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("protocol", choices=("http", "grpc"), nargs="?", default="http")
    parser.add_argument("--totals", action="store_true", help="print the totals alone")
    parser.add_argument("--picture", type=Path, metavar="FILE", help="draw the calls into an SVG file")
    arguments = parser.parse_args()
    recorder = Recorder()
    threading.setprofile(recorder.profile)  # threads that start later, such as the instance's
    sys.setprofile(recorder.profile)
    send = _send_http if arguments.protocol == "http" else _send_grpc
    with asyncio.Runner(loop_factory=_loop_factory(arguments.protocol)) as runner:
        runner.run(_measure(recorder, send))
    print(report(recorder.calls, arguments.totals))
    if arguments.picture is not None:
        protocol = {"http": "HTTP", "grpc": "gRPC"}[arguments.protocol]
        arguments.picture.write_text(picture(f"The way of a request over {protocol}", recorder.calls))


def report(calls: list[Call], totals_only: bool) -> str:
    """The calls in order under the file that they stand in, then how many each distribution has in how many files."""
    lines: list[str] = []
    if not totals_only:
        file = ""
        for call in calls:
            if call.file != file:
                file = call.file
                lines.append(f"{file}  [{call.thread}]")
            lines.append(f"    {call.function}")
        lines.append("")
    by_distribution = Counter(call.distribution for call in calls)
    for distribution, count in by_distribution.most_common():
        files = Counter(call.file for call in calls if call.distribution == distribution)
        detail = ", ".join(f"{Path(name).name} {number}" for name, number in files.most_common())
        lines.append(f"{distribution}: {count} calls in {len(files)} files ({detail})")
    lines.append(f"in all: {len(calls)} calls")
    return "\n".join(lines)


async def _measure(recorder: Recorder, send: Callable[[Server, Recorder, asyncio.AbstractEventLoop], None]) -> None:
    loop = asyncio.get_running_loop()
    options: dict[str, Any] = {
        "http-port": 0,
        "grpc-port": 0,
        "http-address": "127.0.0.1",
        "grpc-address": "127.0.0.1",
    }
    plugins = [naiad_custom, naiad_scheduler_dynamic, naiad_http, naiad_grpc]
    with tempfile.TemporaryDirectory() as repository:
        _write_model(Path(repository, MODEL))
        async with Server(model_repository=[repository], plugins=plugins, options=options) as server:
            await asyncio.to_thread(send, server, recorder, loop)


def _write_model(folder: Path) -> None:
    (folder / "1").mkdir(parents=True)
    (folder / "config.pbtxt").write_text(_CONFIG)
    (folder / "1" / "model.py").write_text(_CODE)


def _send_http(server: Server, recorder: Recorder, loop: asyncio.AbstractEventLoop) -> None:
    recorder.ignored_threads.add(threading.get_ident())
    tensor = {"name": "INPUT0", "shape": [1, 16], "datatype": "FP32", "parameters": {"binary_data_size": _ARRAY.nbytes}}
    head = json.dumps({"inputs": [tensor], "outputs": [{"name": "OUTPUT0", "parameters": {"binary_data": True}}]})
    body = head.encode() + _ARRAY.tobytes()
    request = (
        f"POST /v2/models/{MODEL}/infer HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/octet-stream\r\n"
        f"Inference-Header-Content-Length: {len(head)}\r\nContent-Length: {len(body)}\r\n\r\n"
    ).encode() + body
    host, port = _address(server, "http").split(":")
    with socket.create_connection((host, int(port))) as connection:

        def once() -> None:
            connection.sendall(request)
            answer = b""
            while not answer.endswith(_ARRAY.tobytes()):
                answer += connection.recv(65536)

        _record(once, recorder, loop)


def _send_grpc(server: Server, recorder: Recorder, loop: asyncio.AbstractEventLoop) -> None:
    import tritonclient.grpc as client

    recorder.ignored_threads.add(threading.get_ident())
    connection = client.InferenceServerClient(_address(server, "grpc"))
    tensor = client.InferInput("INPUT0", [1, 16], "FP32")
    tensor.set_data_from_numpy(_ARRAY)
    outputs = [client.InferRequestedOutput("OUTPUT0")]

    def once() -> None:
        connection.infer(MODEL, [tensor], outputs=outputs)

    _record(once, recorder, loop)
    connection.close()


def _record(once: Callable[[], None], recorder: Recorder, loop: asyncio.AbstractEventLoop) -> None:
    """Record a request of a warm server until the loop has nothing left to do; of several, one as most of them are."""
    for _ in range(_WARM_UP_REQUESTS):
        once()
    recordings = [_recorded(once, recorder, loop) for _ in range(_RECORDINGS)]
    usual = Counter(map(len, recordings)).most_common(1)[0][0]
    recorder.calls = next(calls for calls in recordings if len(calls) == usual)


def _recorded(once: Callable[[], None], recorder: Recorder, loop: asyncio.AbstractEventLoop) -> list[Call]:
    stopped = threading.Event()

    def stop() -> None:
        recorder.stop()
        stopped.set()

    recorder.calls = []
    recorder.is_on = True
    once()
    loop.call_soon_threadsafe(stop)  # after what the request left for the loop to do
    stopped.wait()
    return [call for call in recorder.calls if call.distribution != "this script"]


def _address(server: Server, name: str) -> str:
    frontend: Any = server.plugins.frontends()[name]
    return f"127.0.0.1:{frontend.port}" if name == "http" else str(frontend.target)


def _loop_factory(protocol: str) -> Any:
    import uvloop

    return uvloop.new_event_loop if protocol == "http" else None


_PACKAGES = {
    "kernel": "naiad",
    "tensors": "naiad_tensors",
    "statistics": "naiad_statistics",
    "frontend (HTTP)": "naiad_http",
    "frontend (gRPC)": "naiad_grpc",
    "backend": "naiad_custom",
    "scheduler": "naiad_scheduler_dynamic",
    "kit": "naiad_kit",
}


def _folder(package: str) -> str:
    spec = find_spec(package)
    if spec is None or spec.origin is None:
        raise RuntimeError(f"package {package} is not installed")
    return str(Path(spec.origin).parent) + "/"


_FOLDERS = {label: _folder(package) for label, package in _PACKAGES.items()}


def _file_of(frame: types.FrameType) -> str:
    """The file that the call stands in; code that dataclasses generate counts for its caller."""
    path = frame.f_code.co_filename
    return frame.f_back.f_code.co_filename if path == "<string>" and frame.f_back else path


def _function_of(frame: types.FrameType) -> str:
    """The qualified name of what is called; for code that dataclasses generate, the method of the class itself."""
    if frame.f_code.co_filename == "<string>" and "self" in frame.f_locals:
        return f"{type(frame.f_locals['self']).__qualname__}.{frame.f_code.co_name}"
    return frame.f_code.co_qualname


def _thread_name() -> str:
    return "loop" if threading.get_ident() == threading.main_thread().ident else "instance"


def _home_of(path: str) -> tuple[str, str]:
    """The distribution that a file belongs to, and its name within."""
    if path == __file__:
        return "this script", path
    for label, folder in _FOLDERS.items():
        if path.startswith(folder):
            return label, path.removeprefix(str(Path(folder).parent) + "/")
    return "model" if path.endswith(f"/{MODEL}/1/model.py") else "libraries", Path(path).name


if __name__ == "__main__":
    main()
