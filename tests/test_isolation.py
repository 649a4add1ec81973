"""A real server whose models misbehave in every way, isolated and not, under load by both protocols."""

import re
import resource
import signal
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pytest
import tritonclient.grpc as grpc
import tritonclient.http as http

from .written import write_model

if TYPE_CHECKING:
    from .conftest import ServerProcess

MODEL = """
import builtins, ctypes, locale, os, resource, signal, sys
import triton_python_backend_utils as pb_utils

class Odd(Exception):
    def __str__(self):
        return 1 / 0

class TritonPythonModel:
    def execute(self, requests):
        responses = []
        for request in requests:
            x = pb_utils.get_input_tensor_by_name(request, "X").as_numpy()
            if x[0] >= FIRST:
                FAULTS[int(x[0]) - FIRST]()
            responses.append(pb_utils.InferenceResponse([pb_utils.Tensor("Y", x)]))
        return responses

FIRST = 100
"""
CONFIG = """
backend: "python"
input { name: "X" data_type: TYPE_FP32 dims: 1 } output { name: "Y" data_type: TYPE_FP32 dims: 1 }
"""
BAD = """
parameters { key: "isolation" value { string_value: "ISOLATION" } }
parameters { key: "execution_timeout" value { string_value: "1" } }
parameters { key: "memory_limit" value { string_value: "4G" } }
"""
FREEZES = "while True: pass"
ANSWERS = ""


class Fault(NamedTuple):
    """What a model does, and what its client reads of it where the model is isolated, and on a thread.

    ANSWERS is a proper answer, None that the server cannot bear it; `ends` is its exit status then, 0 if it goes on.
    """

    code: str
    isolated: str
    on_thread: str | None
    ends: int = 0


FAULTS = {
    "segmentation_fault": Fault("ctypes.string_at(0)", "signal 11", None, -signal.SIGSEGV),
    "os_exit": Fault("os._exit(3)", "exit code 3", None, 3),
    "sigkill": Fault("os.kill(os.getpid(), signal.SIGKILL)", "signal 9", None, -signal.SIGKILL),
    "abort": Fault("os.abort()", "signal 6", None, -signal.SIGABRT),
    "system_exit": Fault("sys.exit(4)", "SystemExit: 4", "SystemExit"),
    "keyboard_interrupt": Fault("raise KeyboardInterrupt", "KeyboardInterrupt", "KeyboardInterrupt"),
    "closed_files": Fault("os.closerange(3, 1000)", "closed its link", None, -signal.SIGABRT),
    "endless_loop": Fault(FREEZES, "execution_timeout", None),
    "keeps_the_interpreter": Fault("ctypes.PyDLL(None).pause()", "execution_timeout", None),
    "keeps_the_interpreter_a_while": Fault("ctypes.PyDLL(None).usleep(2_000_000)", "execution_timeout", None),
    "much_memory": Fault("bytearray(20 << 30)", "MemoryError", "MemoryError"),
    "hangs_up": Fault("os.kill(os.getpid(), signal.SIGHUP)", "signal 1 ", None),
    "terminates": Fault("os.kill(os.getpid(), signal.SIGTERM)", "signal 15 ", None),
    "interrupts": Fault("signal.raise_signal(signal.SIGINT)", "KeyboardInterrupt", None),
    "endless_recursion": Fault(
        "sys.setrecursionlimit(1 << 30); do_endless_recursion()", "execution_timeout|MemoryError", None
    ),
    "replaced_builtins": Fault("builtins.isinstance = builtins.len = None", "died", None),
    "closed_stderr": Fault("sys.stderr.close()", ANSWERS, ANSWERS),
    "few_files": Fault("resource.setrlimit(resource.RLIMIT_NOFILE, (20, 20))", ANSWERS, None),
    "no_modules": Fault("sys.modules.clear()", ANSWERS, None),
    "chdir": Fault("os.chdir('/')", ANSWERS, ANSWERS),
    "signals": Fault("signal.signal(signal.SIGTERM, signal.SIG_IGN)", ANSWERS, "signal only works in main thread"),
    "locale": Fault("locale.setlocale(locale.LC_ALL, 'C')", ANSWERS, ANSWERS),
    "fork": Fault("os.fork() or os._exit(0)", ANSWERS, ANSWERS),
    "garbage": Fault("os.write(1, bytes(range(32)) * 500)", ANSWERS, ANSWERS),
    "exception_without_text": Fault("raise Odd", "Odd", "Odd"),
}
IN_ONE_PROCESS = {
    "interrupts": "KeyboardInterrupt|^$",  # the main thread of the process is interrupted, in its time
    "signals": "signal only works in main thread",
}
"""What differs where all instances of a model live on threads of one process."""
LIBRARIES = {"http": http, "grpc": grpc}


def write_faults(repository: Path, isolation: str, *names: str) -> Path:
    """A repository with `good`, on a thread, and models of these names that have every fault."""
    functions = [f"def do_{name}():\n    {fault.code}\n\n" for name, fault in FAULTS.items()]
    source = "".join([MODEL, *functions, f"FAULTS = [{', '.join(f'do_{name}' for name in FAULTS)}]\n"])
    for name in ("good", *names):
        bad = "" if name == "good" else BAD.replace("ISOLATION", isolation)
        write_model(repository, name, source, CONFIG + bad)
    return repository


def number_of(fault: str) -> float:
    """The request that has a model do this."""
    return 100.0 + list(FAULTS).index(fault)


def addresses_of(server: "ServerProcess") -> dict[str, str]:
    lines = [server.wait_for(r"(http|grpc) frontend listens at \S*?([\d.]+:\d+)") for _ in LIBRARIES]
    return {each.group(1): each.group(2) for each in lines}


def client_of(name: str, address: str) -> Any:
    patience = {"network_timeout": 100, "connection_timeout": 100} if name == "http" else {}
    return LIBRARIES[name].InferenceServerClient(address, **patience)


def infer(client, tensor, model: str, value: float) -> float:
    """What the model answers."""
    x = tensor("X", [1], "FP32")
    x.set_data_from_numpy(np.array([value], np.float32))
    return float(client.infer(model, [x]).as_numpy("Y")[0])


def text_of(client: Any, library: Any, model: str, value: float) -> str:
    """The error that the model answers with, ANSWERS for none."""
    try:
        assert infer(client, library.InferInput, model, value) == value
    except (http.InferenceServerException, grpc.InferenceServerException) as error:
        return str(error)
    return ANSWERS


def wait_until_it_answers(client: Any, library: Any, model: str) -> None:
    """It may be about to be replaced."""
    until = time.monotonic() + 60
    while text_of(client, library, model, 0) != ANSWERS:
        assert time.monotonic() < until
        time.sleep(0.05)


@contextmanager
def load_on_good(addresses: dict[str, str]) -> Iterator[None]:
    """Requests to `good` by both protocols meanwhile, none of which may be lost."""
    answered, failures, over = Counter(), [], threading.Event()

    def load(name: str) -> None:
        with client_of(name, addresses[name]) as client:
            while not over.wait(0.02):
                try:
                    assert infer(client, LIBRARIES[name].InferInput, "good", 0.5) == 0.5
                    answered[name] += 1
                except Exception as error:  # noqa: BLE001 - whatever it is, it is a lost request
                    failures.append(error)
                    return

    threads = [threading.Thread(target=load, args=(name,)) for name in LIBRARIES]
    for thread in threads:
        thread.start()
    try:
        yield
        until = time.monotonic() + 60
        while not failures and min(answered[name] for name in LIBRARIES) <= 3 and time.monotonic() < until:
            time.sleep(0.02)
    finally:
        over.set()
        for thread in threads:
            thread.join()
    assert failures == []
    assert min(answered[name] for name in LIBRARIES) > 3


@pytest.mark.parametrize("isolation", ["process", "model", "thread"])
def test_no_fault_of_a_model_reaches_another_one(
    serve: "Callable[..., ServerProcess]", tmp_path: Path, isolation: str
) -> None:
    texts = {name: each.on_thread if isolation == "thread" else each.isolated for name, each in FAULTS.items()}
    texts |= IN_ONE_PROCESS if isolation == "model" else {}
    survived = {name: text for name, text in texts.items() if text is not None}
    failing = [name for name, text in survived.items() if text]
    model_of = {name: f"fails_{failing.index(name) // 2}" if name in failing else "answers" for name in survived}
    server = serve(write_faults(tmp_path / "models", isolation, *model_of.values()))
    addresses = addresses_of(server)
    resource.prlimit(server._process.pid, resource.RLIMIT_AS, (16 << 30, resource.RLIM_INFINITY))

    with load_on_good(addresses), ExitStack() as stack:
        clients = [(stack.enter_context(client_of(name, addresses[name])), LIBRARIES[name]) for name in LIBRARIES]
        for at, (name, expected) in enumerate(survived.items(), isolation == "thread"):
            client, library = clients[at % len(clients)]
            text = text_of(client, library, model_of[name], number_of(name))
            assert re.search(expected, text) if expected else text == ANSWERS, (name, text)
            wait_until_it_answers(client, library, model_of[name])

    server.signal(signal.SIGTERM)
    assert server.exit_status() == 0


@pytest.mark.parametrize("name", [name for name, fault in FAULTS.items() if fault.ends])
def test_what_ends_a_process_ends_the_server_without_isolation(
    serve: "Callable[..., ServerProcess]", tmp_path: Path, name: str
) -> None:
    server = serve(write_faults(tmp_path / "models", "thread", "bad"), frontends=["http", "grpc"])
    addresses = addresses_of(server)

    with client_of("http", addresses["http"]) as one, client_of("grpc", addresses["grpc"]) as other:
        threading.Thread(target=ignore, args=(one, http, "bad", number_of(name))).start()
        ignore(other, grpc, "bad", number_of(name))

    assert server.exit_status() == FAULTS[name].ends


@pytest.mark.parametrize("name", ["hangs_up", "terminates", "interrupts"])
def test_a_signal_that_a_model_sends_stops_the_server_without_isolation(
    serve: "Callable[..., ServerProcess]", tmp_path: Path, name: str
) -> None:
    server = serve(write_faults(tmp_path / "models", "thread", "bad"), frontends=["http", "grpc"])
    addresses = addresses_of(server)

    with client_of("http", addresses["http"]) as client:
        ignore(client, http, "bad", number_of(name))

    assert server.exit_status() == 0


def test_a_library_that_keeps_the_interpreter_on_a_thread_holds_all_requests_up_and_loses_none(
    serve: "Callable[..., ServerProcess]", tmp_path: Path
) -> None:
    server = serve(write_faults(tmp_path / "models", "thread", "bad"), frontends=["http", "grpc"])
    addresses = addresses_of(server)
    waits = []

    with (
        load_on_good(addresses),
        client_of("http", addresses["http"]) as one,
        client_of("grpc", addresses["grpc"]) as other,
    ):
        keeps = threading.Thread(target=ignore, args=(one, http, "bad", number_of("keeps_the_interpreter_a_while")))
        keeps.start()
        while keeps.is_alive():
            begun = time.monotonic()
            assert infer(other, grpc.InferInput, "good", 0.5) == 0.5
            waits.append(time.monotonic() - begun)
        keeps.join()

    assert max(waits) >= 1.5
    server.signal(signal.SIGTERM)
    assert server.exit_status() == 0


def test_an_endless_loop_on_a_thread_leaves_the_other_models_alone(
    serve: "Callable[..., ServerProcess]", tmp_path: Path
) -> None:
    server = serve(write_faults(tmp_path / "models", "thread", "bad"))
    addresses = addresses_of(server)

    with client_of("http", addresses["http"]) as client:
        threading.Thread(target=ignore, args=(client, http, "bad", number_of("endless_loop")), daemon=True).start()
        with load_on_good(addresses), client_of("grpc", addresses["grpc"]) as other:
            for _ in range(50):
                infer(other, grpc.InferInput, "good", 0.5)
        server.signal(signal.SIGKILL)
        server.exit_status()


@pytest.mark.parametrize("hangs", [False, True])
def test_the_system_ends_the_processes_of_a_server_that_is_killed(
    serve: "Callable[..., ServerProcess]", tmp_path: Path, hangs: bool
) -> None:
    folder = write_faults(tmp_path / "models", "process", "bad")
    config = folder / "bad" / "config.pbtxt"
    config.write_text(config.read_text().replace('"1"', '"100"'))
    server = serve(folder, frontends=["http"])
    with http.InferenceServerClient(server.url.removeprefix("http://")) as client:
        infer(client, http.InferInput, "bad", 0)
        (process,) = server.children()
        if hangs:
            idle = ticks(process)
            threading.Thread(target=ignore, args=(client, http, "bad", number_of("endless_loop")), daemon=True).start()
            while ticks(process) < idle + 20:  # it hangs, and computes
                time.sleep(0.01)
        server.signal(signal.SIGKILL)
        server.exit_status()

        until = time.monotonic() + 10
        while (process / "exe").exists() and "Z" not in (process / "stat").read_text().rpartition(")")[2][:3]:
            assert time.monotonic() < until
            time.sleep(0.02)


def ignore(client: Any, library: Any, model: str, value: float) -> None:
    """Send a request whose outcome does not matter."""
    try:
        infer(client, library.InferInput, model, value)
    except Exception:  # noqa: BLE001 - the server ends
        return


def ticks(process: Path) -> int:
    """The processor time that a process has used, in hundredths of a second."""
    return int((process / "stat").read_text().rpartition(")")[2].split()[11])
