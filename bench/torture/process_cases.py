"""Models, signals and pipes that end, freeze or fill the process: a server must live through them, and stop after."""

import contextlib
import os
import signal
import threading
import time
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path

import grpc

from bench.torture.case import Bounds, Case, Figure, count_of
from bench.torture.grpc_cases import channel_to, infer_request
from bench.torture.server import Setup, Target
from bench.torture.wire import HttpAnswer, ask, connect, infer_path, json_infer, read_answer, request, tensor

_SERVICE = "/inference.GRPCInferenceService/"
_READY_MODEL = "misbehaving_ready"
_ONE = json_infer(tensor("INPUT0", "FP32", [1], [1]))


def post(target: Target, path: str, body: bytes = b"{}", timeout: float = 20.0) -> HttpAnswer:
    return ask(target.ports.http, "POST", path, body, timeout=timeout)


def ready_that(misbehaves: str, seconds: float = 4) -> Callable[[Target], Sequence[Figure]]:
    """Ask for the readiness over both protocols while `add_sub` is busy and a model's `ready` misbehaves so."""

    def attack(target: Target) -> Sequence[Figure]:
        until = time.monotonic() + seconds
        busy = [threading.Thread(target=_keep_busy, args=(target, until)) for _ in range(4)]
        for each in busy:
            each.start()
        time.sleep(1)  # so that an instance leads the event loop
        armed = target.repository / _READY_MODEL / "1" / "armed"
        armed.with_suffix(".new").write_text(misbehaves)
        armed.with_suffix(".new").rename(armed)
        with channel_to(target) as channel:
            call = channel.unary_unary(_SERVICE + "ServerReady")
            while time.monotonic() < until:
                call.future(b"", timeout=5).exception()
                with contextlib.suppress(OSError, EOFError):
                    ask(target.ports.http, "GET", "/v2/health/ready", timeout=5)
        for each in busy:
            each.join()
        return []

    return attack


def _keep_busy(target: Target, until: float) -> None:
    inputs = [tensor(name, "FP32", [1, 16], [1] * 16) for name in ("INPUT0", "INPUT1")]
    content = request("POST", infer_path("add_sub"), json_infer(*inputs))
    with contextlib.suppress(OSError, EOFError), connect(target.ports.http) as connection:
        while time.monotonic() < until:
            connection.sendall(content)
            read_answer(connection)


def requests_to(model: str, times: int = 1, seconds: float = 10) -> Callable[[Target], Sequence[Figure]]:
    """Ask the model a few times; each request must be answered well within so many seconds."""

    def attack(target: Target) -> Sequence[Figure]:
        worst, failed = 0.0, 0
        for _ in range(times):
            started = time.monotonic()
            failed += post(target, infer_path(model), _ONE).status != 200
            worst = max(worst, time.monotonic() - started)
        return [*count_of("answer s", worst, seconds), *count_of("failed requests", failed)]

    return attack


def fork(target: Target) -> Sequence[Figure]:
    """A model forks a child, which lives on when the server has stopped."""
    child = int(post(target, infer_path("forks"), _ONE).body.rpartition(b'"data":[')[2].split(b"]")[0])
    (target.repository / "child").write_text(str(child))
    return []


def ports_after_fork(target: Target) -> Sequence[Figure]:
    """How many of the server's ports still accept connections; ends the child."""
    taken = [name for name in ("http", "grpc", "metrics") if _accepts(getattr(target.ports, name))]
    with contextlib.suppress(OSError, ValueError):
        os.kill(int((target.repository / "child").read_text()), signal.SIGKILL)
    return [Figure("ports that the child keeps", len(taken), 0, ", ".join(taken))]


def _accepts(port: int) -> bool:
    try:
        connect(port, 2).close()
    except OSError:
        return False
    return True


def hang_up(target: Target) -> Sequence[Figure]:
    """SIGHUP, from a model to its own process: a stop in order or none, but no sudden death."""
    with contextlib.suppress(OSError, EOFError):
        post(target, infer_path("hangs_up"), _ONE)
    time.sleep(3)
    return count_of("killed by SIGHUP", float(target.process.poll() == -signal.SIGHUP))


def keep_alive_stop(target: Target) -> Sequence[Figure]:
    """SIGTERM while 32 clients ask on kept connections: a reset is an end that no `Connection: close` announced."""
    resets: Counter[str] = Counter()
    clients = [threading.Thread(target=_keep_alive, args=(target, resets)) for _ in range(32)]
    for client in clients:
        client.start()
    time.sleep(1.5)
    target.process.send_signal(signal.SIGTERM)
    for client in clients:
        client.join()
    return [Figure("clients reset", sum(resets.values()), 0, str(dict(resets) or ""))]


def _keep_alive(target: Target, resets: Counter[str]) -> None:
    """Ask every 10 ms; a new connection when asked to close; ends when none can be had."""
    inputs = [tensor(name, "FP32", [1, 16], [1] * 16) for name in ("INPUT0", "INPUT1")]
    content = request("POST", infer_path("add_sub"), json_infer(*inputs))
    until = time.monotonic() + 15
    while time.monotonic() < until:
        try:
            connection = connect(target.ports.http)
            connection.sendall(content)
            first = read_answer(connection)
        except (OSError, EOFError):
            return  # the port is closed, or was closed before the first answer: a client tries elsewhere
        with connection:
            try:
                while first.fields.get("connection") != "close":
                    time.sleep(0.01)
                    connection.sendall(content)
                    first = read_answer(connection)
            except (OSError, EOFError) as error:
                resets[type(error).__name__] += 1


def index_of_many(target: Target) -> Sequence[Figure]:
    """The index of a repository of 30,000 folders, asked for by two clients for 6 s."""
    until = time.monotonic() + 6

    def client() -> None:
        while time.monotonic() < until:
            with contextlib.suppress(OSError, EOFError):
                post(target, "/v2/repository/index")

    clients = [threading.Thread(target=client) for _ in range(2)]
    for each in clients:
        each.start()
    for each in clients:
        each.join()
    return []


def _many_folders(repository: Path) -> Sequence[str]:
    for number in range(30_000):
        (repository / f"model_{number}").mkdir()
    return []


def shared_regions(target: Target) -> Sequence[Figure]:
    """5,000 regions over one segment of 4 KiB: descriptors, and errors other than a refusal."""
    segment = Path("/dev/shm") / f"torture-{target.pid}"
    segment.write_bytes(bytes(4096))
    before, broken = target.descriptors(), 0
    try:
        with connect(target.ports.http) as connection:
            for number in range(5000):
                body = f'{{"key":"/{segment.name}","offset":0,"byte_size":4096}}'.encode()
                connection.sendall(request("POST", f"/v2/systemsharedmemory/region/r{number}/register", body))
                broken += read_answer(connection).status == 500
        return [Figure("descriptors", target.descriptors() - before, 50), Figure("answered 500", broken, 0)]
    finally:
        segment.unlink()


def many_calls(target: Target) -> Sequence[Figure]:
    """100 requests of 10 MB to a model that passes each on to a model that fails."""
    content = infer_request("calls", bytes(10_000_000))
    with channel_to(target) as channel:
        call = channel.unary_unary(_SERVICE + "ModelInfer")
        broken = ""
        for _ in range(100):
            error = call.future(content, timeout=20).exception()
            broken = broken or str(error or "")
            if not target.alive():
                break
    return [Figure("calls failed", float(bool(broken)), 0, broken[:300])]


def empty_messages(target: Target) -> Sequence[Figure]:
    """20,000 empty messages on one stream of gRPC."""
    with channel_to(target) as channel:
        call = channel.stream_stream(_SERVICE + "ModelStreamInfer")
        with contextlib.suppress(grpc.RpcError):
            for _answer in call(iter([b""] * 20_000), timeout=15):
                pass
    return []


_WITH_READY = Bounds(wait=3, log=300)

CASES = (
    *(
        Case(f"process-ready-that-{name}", ready_that(name), _WITH_READY, Setup(("add_sub", _READY_MODEL)))
        for name in ("exits", "interrupts")
    ),
    Case("process-ready-of-3s", ready_that("sleeps"), Bounds(wait=2), Setup(("add_sub", _READY_MODEL))),
    Case("process-closed-stderr", requests_to("closes_stderr"), Bounds(), Setup(("add_sub", "closes_stderr"))),
    Case(
        "process-unread-log",
        requests_to("writes_logs", 20),
        Bounds(),
        Setup(("add_sub", "writes_logs"), unread_log=True),
    ),
    Case("process-fork", fork, Bounds(), Setup(("add_sub", "forks")), after=ports_after_fork),
    Case("process-sighup", hang_up, Bounds(), Setup(("add_sub", "hangs_up")), probed=False, ends=True),
    Case("process-stop-of-keep-alive", keep_alive_stop, Bounds(), probed=False, ends=True),
    Case(
        "process-index-of-30000",
        index_of_many,
        Bounds(kept=100),
        Setup(options=("--model-control-mode=explicit", "--load-model=add_sub"), prepare=_many_folders),
    ),
    Case("process-5000-regions", shared_regions, Bounds(), Setup(options=("--allow-client-shm=true",))),
    Case("process-failing-model-calls", many_calls, Bounds(80, 250, log=600), Setup(("add_sub", "calls", "raises"))),
    Case("grpc-empty-messages", empty_messages),
)
