"""Isolated models answer as they do in the server's own process."""

import errno
import os
import select
import signal
import socket
import subprocess
import textwrap
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any, NoReturn

import numpy as np
import pytest

from naiad.backend import ModelContext
from naiad.errors import ModelFailedError, NaiadError, WorkerDiedError
from naiad_config.text import parse_text
from naiad_process_workers import process, process_ends
from naiad_process_workers.connection import Connection
from naiad_process_workers.messages import Kind

from .conftest import RUN_CODE, TENSORS, WITH_CODE, IsolatedCode, Serve, Write, children, held, until

ONE = np.ones(4, np.float32)


def eventually(check: Callable[[], object], seconds: float = 20.0) -> None:
    """Return when the check returns without an error of Naiad's."""
    until = time.monotonic() + seconds
    while True:
        try:
            check()
            return
        except NaiadError:
            assert time.monotonic() < until
            time.sleep(0.02)


def test_a_model_runs_in_a_process_of_its_own(write: Write, served: Serve) -> None:
    model = write("m", body="x = x * 0 + os.getpid()")

    with served(model) as client:
        process = int(client.infer(X=ONE)["Y"][0]) - 1

        assert process != os.getpid()
        assert Path(f"/proc/{process}").exists()
    assert not Path(f"/proc/{process}").exists()


@pytest.mark.parametrize("size", [0, 1, 1000, 100_000, 3_000_000])
def test_tensors_of_any_size_arrive(isolated: IsolatedCode, size: int) -> None:
    x = np.arange(size, dtype=np.float32)

    for _ in range(3):
        assert np.array_equal(isolated.run("", x), x + 1)


def test_strings_arrive(write: Write, served: Serve) -> None:
    model = write(
        "m",
        """
        import numpy as np
        import triton_python_backend_utils as pb_utils

        class TritonPythonModel:
            def execute(self, requests):
                (request,) = requests
                x = pb_utils.get_input_tensor_by_name(request, "X").as_numpy()
                y = np.array([each + b"!" for each in x.flat], dtype=object).reshape(x.shape)
                return [pb_utils.InferenceResponse([pb_utils.Tensor("Y", y)])]
        """,
        "input { name: 'X' data_type: TYPE_STRING dims: -1 } output { name: 'Y' data_type: TYPE_STRING dims: -1 }",
    )
    words = np.array([b"a", b"", "ü".encode(), b"x" * 10_000], dtype=object)

    with served(model) as client:
        for each in (words, np.concatenate([words] * 100)):
            assert client.infer(X=each)["Y"].tolist() == [word + b"!" for word in each]


def test_the_backend_completes_the_configuration_in_the_process(write: Write, served: Serve) -> None:
    model = write(
        "m",
        """
        import os
        from naiad_custom import FP32, Array, model

        @model
        def double(x: Array[FP32, 2]) -> Array[FP32, 2]:
            return x + x + os.getpid()
        """,
        "",
    )

    with served(model) as client:
        (y,) = client.infer(x=[1, 2]).values()

        assert y[1] - y[0] == 2
        assert y[0] - 2 != os.getpid()


def test_an_exception_fails_its_request_with_a_traceback_in_the_log(
    write: Write, served: Serve, caplog: pytest.LogCaptureFixture
) -> None:
    model = write("m", body="if x[0] == 7: raise ValueError('seven')")

    with served(model) as client:
        with pytest.raises(ModelFailedError, match=r"^instance 'm_0' failed: ValueError: seven \(model.py:\d+\)$"):
            client.infer(X=ONE * 7)
        assert client.infer(X=ONE)["Y"].tolist() == [2] * 4

    assert "raise ValueError('seven')" in caplog.text
    assert caplog.text.count("Traceback (most recent call last)") == 1
    assert "naiad" not in caplog.text.partition("Traceback")[2]


def test_a_model_that_does_not_load_says_why_with_a_traceback_in_the_log(
    write: Write, served: Serve, caplog: pytest.LogCaptureFixture
) -> None:
    model = write("m", "import sys\nraise RuntimeError('broken')")

    with pytest.raises(NaiadError, match=r"model.py:2: RuntimeError: broken"), served(model):
        pass

    assert caplog.text.count("Traceback (most recent call last)") == 1
    assert "line 2, in <module>\n    raise RuntimeError('broken')" in caplog.text


def test_what_a_model_raises_at_its_end_is_logged_as_a_traceback_of_its_own_code(
    write: Write, served: Serve, caplog: pytest.LogCaptureFixture
) -> None:
    model = write(
        "m",
        """
        import triton_python_backend_utils as pb_utils

        class TritonPythonModel:
            def execute(self, requests):
                return []

            def is_ready(self):
                raise OSError("away")

            def finalize(self):
                raise ValueError("stuck")
        """,
    )

    reason = "ready() has not answered yet"
    with served(model) as client:
        while "has not answered yet" in reason:
            (reason,) = client.call(lambda server: server.model_ready("m", 0)).reasons

    assert reason == "instance 'm_0' is not ready: is_ready() raised OSError: away (model.py:9)"
    (record,) = [each for each in caplog.records if each.getMessage() == "closing instance 'm_0' failed"]
    assert record.exc_text is not None
    _, first, *_ = record.exc_text.splitlines()
    assert first.endswith("line 12, in finalize")


def test_a_process_that_ends_while_it_loads_says_how(write: Write, served: Serve) -> None:
    model = write("m", "import os\nos._exit(5)")

    with pytest.raises(NaiadError, match="the process of model 'm' ended: exit code 5"), served(model):
        pass


def test_a_process_that_is_dropped_without_a_close_ends(tmp_path: Path) -> None:
    def descriptors() -> int:
        return len(list(Path("/proc/self/fd").iterdir()))

    def start_and_drop() -> None:
        context = ModelContext(parse_text('name: "m"'), 1, tmp_path, tmp_path)
        process.ModelProcess(context, process.Environment.own(), process.Limits())

    others = children()
    start_and_drop()  # what all processes share stays
    before = descriptors()

    start_and_drop()

    assert children() == others
    until(lambda: descriptors() <= before)  # the watcher of ends closes its own a moment later


@pytest.mark.parametrize(
    ("module", "what", "code", "reason"),
    [
        (socket, "socketpair", errno.EMFILE, "Too many open files; raise 'ulimit -n'"),
        (subprocess, "Popen", errno.EMFILE, "Too many open files; raise 'ulimit -n'"),
        (subprocess, "Popen", errno.EAGAIN, "Resource temporarily unavailable; raise 'ulimit -u'"),
        (subprocess, "Popen", errno.ENOENT, r"\[Errno 2\] No such file or directory: 'python'"),
    ],
)
def test_a_process_that_cannot_be_started_says_which_limit_to_raise(
    write: Write,
    served: Serve,
    monkeypatch: pytest.MonkeyPatch,
    module: ModuleType,
    what: str,
    code: int,
    reason: str,
) -> None:
    def refuse(*args: object, **options: object) -> NoReturn:
        raise OSError(code, os.strerror(code), *(["python"] if code == errno.ENOENT else []))

    refusing = SimpleNamespace(**{**vars(module), what: refuse})
    monkeypatch.setattr(process, module.__name__, refusing)

    with pytest.raises(NaiadError, match=f"a process for model 'm' cannot be started: {reason}"), served(write("m")):
        pass


ENDS = {
    "os._exit(3)": "exit code 3",
    "sys.exit(4)": "SystemExit: 4",
    "raise KeyboardInterrupt": "KeyboardInterrupt",
    "os.kill(os.getpid(), signal.SIGKILL)": "signal 9",
    "signal.signal(signal.SIGINT, signal.SIG_DFL); signal.raise_signal(signal.SIGINT)": "OpenBLAS .*'ulimit -u'",
    "os.abort()": "signal 6",
    "import ctypes; ctypes.string_at(0)": "signal 11",
    "os.closerange(3, 256)": "closed its link",
}


@pytest.mark.parametrize("code", ENDS)
def test_what_ends_the_process_fails_what_it_held_and_it_is_replaced(
    isolated: IsolatedCode, code: str, caplog: pytest.LogCaptureFixture
) -> None:
    with pytest.raises(WorkerDiedError, match=ENDS[code]):
        isolated.run(code)
    assert "naiad_process_workers" not in caplog.text  # a traceback begins in the code of the model

    isolated.check_replaced()


OPEN_ALL_FILES = """
import resource
resource.setrlimit(resource.RLIMIT_NOFILE, (64, 64))
held = []
try:
    while True:
        held.append(open("/dev/null"))
except OSError:
    pass
"""


def test_ends_of_processes_leave_nothing(isolated: IsolatedCode) -> None:
    def end(times: int) -> None:
        for _ in range(times):
            with pytest.raises(NaiadError, match="exit code 3"):
                isolated.run("os._exit(3)", large)
            isolated.check_replaced()

    large = np.ones(100_000, np.float32)
    end(2)
    before = held()

    end(4)

    until(lambda: all(now <= then for now, then in zip(held(), before, strict=True)))


def test_requests_behind_one_that_ends_the_process_wait_for_its_replacement(
    write: Write, served: Serve, tmp_path: Path
) -> None:
    begun = tmp_path / "begun"
    fatal = f"open({str(begun)!r}, 'w').close(); time.sleep(0.3); os._exit(3)"
    with served(write("m", config=WITH_CODE, body=RUN_CODE)) as client, ThreadPoolExecutor(4) as threads:
        dying = threads.submit(client.infer, X=ONE, CODE=[fatal])
        until(begun.exists)
        waiting = [threads.submit(client.infer, X=ONE, CODE=[""]) for _ in range(3)]

        with pytest.raises(WorkerDiedError, match="exit code 3"):
            dying.result(60)
        assert [each.result(60)["Y"].tolist() for each in waiting] == [[2] * 4] * 3


def test_a_process_that_can_receive_no_descriptor_ends_with_the_advice(isolated: IsolatedCode) -> None:
    isolated.run(OPEN_ALL_FILES)

    with pytest.raises(WorkerDiedError, match="as many files open as it may; raise ulimit -n"):
        isolated.run("", np.ones(5000))

    isolated.check_replaced()


def test_a_process_that_can_start_no_thread_ends_with_that_reason(
    write: Write, served: Serve, caplog: pytest.LogCaptureFixture
) -> None:
    model = write(
        "m",
        """
        import threading
        import triton_python_backend_utils as pb_utils

        def refuse(self):
            raise RuntimeError("can't start new thread")

        class TritonPythonModel:
            def initialize(self, args):
                threading.Thread.start = refuse

            def is_ready(self):
                return True

            def execute(self, requests):
                return []
        """,
    )

    with served(model) as client:
        client.call(lambda server: server.model_ready("m", 0))
        until(lambda: "ended: RuntimeError: can't start new thread" in caplog.text)


FORK_AND_END = """
import ctypes
libc = ctypes.CDLL(None)
libc.signal(signal.SIGTERM, 1)  # it is ignored
if (child := libc.fork()) == 0:
    libc.sleep(15)
    libc._exit(0)
with open({path!r}, "w") as file:
    file.write(str(child))
os._exit(3)
"""


def test_the_end_of_a_process_is_noticed_although_a_child_has_its_links(
    isolated: IsolatedCode, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(process_ends, "SECONDS_TO_LEAVE", 10.0)
    written = tmp_path / "child"

    with pytest.raises(WorkerDiedError, match="exit code 3"):
        isolated.run(FORK_AND_END.format(path=str(written)))

    child = int(written.read_text())
    state = Path(f"/proc/{child}/stat").read_text().split()[2]
    os.kill(child, signal.SIGKILL)
    assert state in "RS"  # it lives, whether or not it has come to its sleep
    isolated.check_replaced()


START = """
import subprocess
child = subprocess.Popen(["sh", "-c", {script!r}], stdout=subprocess.PIPE)
child.stdout.readline()
with open({path!r}, "w") as file:
    file.write(str(child.pid))
"""


@pytest.mark.parametrize("script", ["echo; sleep 1000 & wait", "trap '' TERM; echo; while :; do sleep 1000; done"])
def test_what_a_model_has_started_ends_with_its_process(isolated: IsolatedCode, tmp_path: Path, script: str) -> None:
    written = tmp_path / "child"
    isolated.run(START.format(script=script, path=str(written)))
    child = os.pidfd_open(int(written.read_text()))

    try:
        with pytest.raises(WorkerDiedError):
            isolated.run("os._exit(3)")

        assert select.select([child], [], [], 10.0)[0], "it lives on"
        isolated.check_replaced()
    finally:
        os.close(child)


def test_a_system_without_pidfd_runs_isolated_models(
    write: Write, served: Serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(pid: int) -> NoReturn:
        raise OSError(errno.ENOSYS, os.strerror(errno.ENOSYS))

    monkeypatch.setattr(os, "pidfd_open", refuse)

    with served(write("m")) as client:
        assert client.call(lambda server: server.model_ready("m", 0)).ready


BREAK_THE_INTERPRETER = ["sys.modules.clear()", "import builtins; builtins.len = None"]
ODDITIES = [
    *BREAK_THE_INTERPRETER,
    "os.chdir('/')",
    "print('garbage' * 100); os.write(1, b'\\xff\\x00' * 5000)",
    "sys.stdout.close(); sys.stderr.close()",
    "signal.signal(signal.SIGTERM, signal.SIG_IGN)",
    "import locale; locale.setlocale(locale.LC_ALL, 'C')",
    "os.umask(0o777); os.environ.clear()",
    "import threading; threading.Thread(target=time.sleep, args=(1000,)).start()",
    "import atexit; atexit.register(time.sleep, 1000)",
    "os.fork() or time.sleep(0.1) or os._exit(0)",
]


@pytest.mark.parametrize("code", ODDITIES)
def test_whatever_a_model_does_to_its_process_stays_there(isolated: IsolatedCode, code: str) -> None:
    folder = Path.cwd()

    with suppress(NaiadError):
        isolated.run(code)
    isolated.check_server()
    assert Path.cwd() == folder

    if code in BREAK_THE_INTERPRETER:
        with suppress(NaiadError):
            isolated.run("os._exit(0)")
        isolated.check_replaced()
    assert isolated.run("").tolist() == [2] * 4


def test_a_program_that_a_model_starts_gets_no_descriptor_of_its_links(isolated: IsolatedCode) -> None:
    inherited = "any(os.path.exists(f'/proc/self/fd/{n}') and os.get_inheritable(n) for n in range(3, 256))"

    assert isolated.run(f"assert not {inherited}").tolist() == [2] * 4


def test_an_exception_without_a_text_fails_its_request_alone(isolated: IsolatedCode) -> None:
    with pytest.raises(ModelFailedError, match="Odd"):
        isolated.run("raise type('Odd', (Exception,), {'__str__': lambda self: 1 / 0})()")

    assert isolated.run("").tolist() == [2] * 4


def test_an_execution_that_takes_too_long_is_ended(write: Write, served: Serve) -> None:
    model = write("m", body="while x[0] == 7: pass", execution_timeout="0.3")

    with served(model) as client:
        with pytest.raises(WorkerDiedError, match="execution_timeout"):
            client.infer(X=ONE * 7)
        eventually(lambda: client.infer(X=ONE))


@pytest.mark.parametrize("isolation", ["process", "model"])
def test_a_warm_up_that_takes_too_long_is_ended(
    write: Write, served: Serve, isolation: str, caplog: pytest.LogCaptureFixture
) -> None:
    config = """
        model_warmup {
          name: "zeros" batch_size: 1 inputs { key: "X" value { data_type: TYPE_FP32 dims: 4 zero_data: true } }
        }
    """
    model = write(
        "m", config=TENSORS + config, body="while x[0] == 0: pass", execution_timeout="0.3", isolation=isolation
    )

    with pytest.raises(NaiadError, match=r"longer than 0\.3 s \(execution_timeout\)"), served(model):
        pass

    assert "Traceback" not in caplog.text


def test_a_start_that_takes_too_long_is_ended(write: Write, served: Serve) -> None:
    model = write("m", "import time\ntime.sleep(100)", startup_timeout="0.5")

    with pytest.raises(NaiadError, match="startup_timeout"), served(model):
        pass


def test_memory_has_a_limit(
    write: Write, served: Serve, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("naiad_process_workers.kind.memory_groups", lambda: None)
    model = write("m", body="if x[0] == 7: np.ones(20 << 30, np.uint8)", memory_limit="4G")

    with caplog.at_level("INFO", "naiad.model"), served(model) as client:
        with pytest.raises(ModelFailedError, match="MemoryError"):
            client.infer(X=ONE * 7)
        assert client.infer(X=ONE)["Y"].tolist() == [2] * 4

    assert [each for each in caplog.messages if "memory_limit" in each] == [
        "a memory_limit is one of address space, for this server may not create memory cgroups (docs/isolation.md)"
    ]


@pytest.mark.parametrize(
    ("name", "value"),
    [("isolation", "cage"), ("memory_limit", "much"), ("execution_timeout", "-1"), ("startup_timeout", "soon")],
)
def test_a_parameter_that_is_wrong_is_refused(write: Write, served: Serve, name: str, value: str) -> None:
    model = write("m", **{name: value})

    with pytest.raises(NaiadError, match=f"parameter '{name}' of model 'm' is '{value}'"), served(model):
        pass


def test_isolation_and_a_thread_of_the_server_exclude_each_other(write: Write, served: Serve) -> None:
    model = write("m", execute_on="event_loop")

    with pytest.raises(NaiadError, match="drop one of the parameters"), served(model):
        pass


def test_the_option_isolates_models_that_say_nothing(write: Write, served: Serve) -> None:
    body = "x = x * 0 + os.getpid()"
    models = write("silent", body=body, isolation=""), write("own", body=body, isolation="thread")

    with served(*models, isolation="process") as client:
        assert client["silent"].infer(X=ONE)["Y"][0] - 1 != os.getpid()
        assert client["own"].infer(X=ONE)["Y"][0] - 1 == os.getpid()


def test_instances_have_a_process_each(write: Write, served: Serve) -> None:
    model = write(
        "m",
        config="""
        max_batch_size: 4 instance_group { count: 2 kind: KIND_CPU }
        input { name: "X" data_type: TYPE_FP32 dims: 1 } output { name: "Y" data_type: TYPE_FP32 dims: 1 }
        """,
        body="time.sleep(0.05); x = x * 0 + os.getpid()",
    )
    with served(model) as client:
        answers = client.infer_all(*[{"X": np.ones((1, 1), np.float32)}] * 8)
        pids = {float(answer["Y"][0, 0]) for answer in answers}

    assert len(pids) == 2


def test_the_process_knows_which_requests_came_alone(
    write: Write, served: Serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    kinds: list[int] = []
    send = Connection.send

    def noted(self: Connection, kind: int, *others: Any) -> None:
        kinds.append(kind)
        send(self, kind, *others)

    with served(write("m", body="time.sleep(0.1)")) as client:
        monkeypatch.setattr(Connection, "send", noted)
        for _ in range(2):
            client.infer(X=ONE)
        client.infer_all(*[{"X": ONE}] * 3)  # the second comes while the first is executed

    executed = [kind for kind in kinds if kind in (Kind.EXECUTE, Kind.EXECUTE_ALONE)]
    assert executed[:2] == [Kind.EXECUTE_ALONE] * 2
    assert executed[-1] == Kind.EXECUTE


def test_log_lines_of_the_model_are_the_servers(write: Write, served: Serve, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO", "naiad.model")
    model = write("m", body="pb_utils.Logger.log_warn('look here')")

    with served(model) as client:
        client.infer(X=ONE)
        deadline = time.monotonic() + 10
        while "look here" not in caplog.text and time.monotonic() < deadline:
            time.sleep(0.01)

    (record,) = [each for each in caplog.records if each.getMessage() == "look here"]
    assert record.levelname == "WARNING"
    assert record.filename == "model.py"
    assert record.model == "m"  # type: ignore[attr-defined]


@pytest.mark.parametrize("link", ["work", "control"])
@pytest.mark.parametrize("kind", ["RESPONSE", "LOG", "ANSWER"])
def test_a_process_that_sends_what_no_link_carries_is_replaced(isolated: IsolatedCode, link: str, kind: str) -> None:
    code = f"""
        import gc
        from naiad_process_workers.codec import Encoder
        from naiad_process_workers.messages import Kind
        from naiad_process_workers.runtime import Runtime
        runtime = next(each for each in gc.get_objects() if type(each) is Runtime)
        connection = runtime._main.work if "{link}" == "work" else runtime._control
        encoder = Encoder(connection)
        encoder.value(5)
        connection.send(Kind.{kind}, 1, encoder.body())
        time.sleep(100)
    """
    with pytest.raises(WorkerDiedError, match="it sent what cannot be read"):
        isolated.run(textwrap.dedent(code))

    isolated.check_replaced()
