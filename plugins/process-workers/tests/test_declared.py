"""Isolation that a model's own file asks for, and processes that hold all instances of a model."""

import os
import shutil
import subprocess
import textwrap
import time
from pathlib import Path

import numpy as np
import pytest

from naiad.errors import NaiadError, WorkerDiedError
from naiad_custom import FP32, Array, model
from naiad_custom.include import include_dir
from naiad_testing import serve

from .conftest import Serve, Write, until

ONE = np.ones(4, np.float32)
DECLARED = """
    import os
    import naiad_custom as custom
    from naiad_custom import FP32, Array

    @custom.model(DECLARATION)
    def where(x: Array[FP32, -1]) -> Array[FP32, -1]:
        return x * 0 + os.getpid()
"""
TWO = """
    max_batch_size: 1 instance_group { count: 2 kind: KIND_CPU }
    input { name: "X" data_type: TYPE_FP32 dims: 2 } output { name: "Y" data_type: TYPE_FP32 dims: 2 }
"""
WHERE = "import threading; time.sleep(0.05); x = np.array([[os.getpid(), threading.get_native_id()]], np.float32) - 1"


def declared(declaration: str) -> str:
    return DECLARED.replace("DECLARATION", declaration)


def process_of(client: object) -> int:
    (y,) = client.infer(x=ONE).values()  # type: ignore[attr-defined]
    return int(y[0])


def test_a_file_asks_for_processes(write: Write, served: Serve) -> None:
    with served(write("m", declared('isolation="process"'), "", isolation="")) as client:
        assert process_of(client) != os.getpid()
        config = client.call(lambda server: server.model_config("m", 0))
        assert config.parameters["isolation"].string_value == "process"


@pytest.mark.parametrize(("by_file", "by_configuration"), [("process", "thread"), ("thread", "process")])
def test_the_configuration_comes_before_the_file(
    write: Write, served: Serve, by_file: str, by_configuration: str
) -> None:
    model = write("m", declared(f"isolation={by_file!r}"), "", isolation=by_configuration)

    with served(model) as client:
        assert (process_of(client) == os.getpid()) == (by_configuration == "thread")


def test_the_file_comes_before_the_option(write: Write, served: Serve) -> None:
    with served(write("m", declared('isolation="thread"'), "", isolation=""), isolation="process") as client:
        assert process_of(client) == os.getpid()


def test_a_file_that_says_nothing_lives_where_the_option_says(write: Write, served: Serve) -> None:
    with served(write("m", declared(""), "", isolation=""), isolation="model") as client:
        assert process_of(client) != os.getpid()


def test_nothing_of_an_isolated_file_is_imported_by_the_server(write: Write, served: Serve) -> None:
    code = declared('isolation="process"') + f"\n    assert os.getpid() != {os.getpid()}"

    with served(write("m", code, "", isolation="")) as client:
        assert process_of(client) != os.getpid()


def test_an_isolation_that_cannot_be_read_in_the_source_is_refused(write: Write, served: Serve) -> None:
    code = declared("isolation=str('process')")

    with pytest.raises(NaiadError, match="as a literal in the file itself"), served(write("m", code, "", isolation="")):
        pass


def test_an_unknown_isolation_is_refused_with_the_line(write: Write, served: Serve) -> None:
    code = declared('isolation="cage"')

    with (
        pytest.raises(NaiadError, match=r"model.py:6: TypeError: isolation is 'thread' or 'process' or 'model'"),
        served(write("m", code, "", isolation="")),
    ):
        pass


def test_a_function_without_a_file_is_served_where_it_is() -> None:
    @model(isolation="process")
    def where(x: Array[FP32, -1]) -> Array[FP32, -1]:
        return x * 0 + os.getpid()

    with serve(where) as client:
        assert process_of(client) == os.getpid()


def test_one_process_holds_all_instances_each_on_a_thread(write: Write, served: Serve) -> None:
    with served(write("m", config=TWO, body=WHERE, isolation="model")) as client:
        answers = client.infer_all(*[{"X": np.ones((1, 2), np.float32)}] * 8)
        (process,) = {int(answer["Y"][0, 0]) for answer in answers}
        threads = {int(answer["Y"][0, 1]) for answer in answers}

        assert process != os.getpid()
        assert len(threads) == 2
        assert all(Path(f"/proc/{process}/task/{thread}").exists() for thread in threads)
    assert not Path(f"/proc/{process}").exists()


@pytest.mark.parametrize("end", ["raise SystemExit(4)", "import ctypes; ctypes.string_at(0)"])
def test_all_instances_of_a_process_that_ends_are_replaced(write: Write, served: Serve, end: str) -> None:
    body = f"if x[0, 0] == 7: {end}\n{WHERE}"

    with served(write("m", config=TWO, body=body, isolation="model")) as client:
        one, bad = np.ones((1, 2), np.float32), np.full((1, 2), 7, np.float32)
        before = int(client.infer(X=one)["Y"][0, 0])
        with pytest.raises(WorkerDiedError):
            client.infer(X=bad)

        threads: set[int] = set()
        until = time.monotonic() + 20
        while len(threads) < 2 and time.monotonic() < until:
            try:
                answers = client.infer_all(*[{"X": one}] * 4)
            except NaiadError:
                continue
            threads |= {int(answer["Y"][0, 1]) for answer in answers}
            assert before not in {int(answer["Y"][0, 0]) for answer in answers}
    assert len(threads) == 2


def test_a_stream_of_a_shared_process_is_cancelled(write: Write, served: Serve) -> None:
    code = """
        import naiad_custom
        from collections.abc import Iterator
        from naiad_custom import FP32, Array

        @naiad_custom.model(isolation="model")
        def count(x: Array[FP32, 1]) -> Iterator[Array[FP32, 1]]:
            try:
                while True:
                    yield x
                    x = x + 1
            finally:
                open(__file__ + ".over", "w").close()
    """
    folder = write("m", code, "", isolation="")
    with served(folder) as client:
        stream = client["m"].stream(x=[1])
        assert [float(next(iter(next(stream).values()))[0]) for _ in range(3)] == [1, 2, 3]
        stream.close()
        until = time.monotonic() + 20
        while not (folder / "1" / "model.py.over").exists():
            assert time.monotonic() < until
            time.sleep(0.02)


INITIALIZES = """
    import os, threading, time
    import numpy as np
    import triton_python_backend_utils as pb_utils

    second_fails = threading.Event()

    class TritonPythonModel:
        def initialize(self, args):
            is_second = args["model_instance_name"].endswith("_1")
            INITIALIZE

        def execute(self, requests):
            (request,) = requests
            x = pb_utils.get_input_tensor_by_name(request, "X").as_numpy()
            if x[0, 0] == 7:
                os._exit(3)
            time.sleep(0.05)
            y = np.array([[os.getpid(), threading.get_native_id()]], np.float32)
            return [pb_utils.InferenceResponse([pb_utils.Tensor("Y", y)])]
"""


def initializes(code: str) -> str:
    return INITIALIZES.replace("INITIALIZE", textwrap.indent(textwrap.dedent(code), " " * 12).strip())


def test_an_instance_that_fails_to_initialise_says_why_while_another_one_initialises(
    write: Write, served: Serve
) -> None:
    code = """
        if is_second:
            second_fails.set()
            raise ValueError("no second")
        second_fails.wait()
        while [each.name[:14] for each in threading.enumerate()].count("naiad-instance") > 1:
            time.sleep(0.01)
    """
    model = write("m", initializes(code), TWO, isolation="model")

    with pytest.raises(NaiadError, match="ValueError: no second"), served(model):
        pass


def test_an_instance_that_fails_to_initialise_leaves_the_others_of_its_process(write: Write, served: Serve) -> None:
    code = """
        if is_second and os.path.exists(__file__ + ".broken"):
            with open(__file__ + ".broken", "a") as file:
                file.write("x")
            raise ValueError("not yet")
    """
    model = write("m", initializes(code), TWO, isolation="model")
    broken = model / "1" / "model.py.broken"
    one, bad = np.ones((1, 2), np.float32), np.full((1, 2), 7, np.float32)

    def threads() -> set[int]:
        """The threads that answer; all of them in the process that was there before."""
        answers = [each["Y"][0].tolist() for each in client.infer_all(*[{"X": one}] * 4)]
        assert {process for process, _ in answers} == {before}
        return {thread for _, thread in answers}

    def descriptors() -> int:
        return len(list(Path(f"/proc/{before}/fd").iterdir()))

    with served(model) as client:
        broken.touch()
        with pytest.raises(WorkerDiedError):
            client.infer(X=bad)
        until(lambda: broken.stat().st_size)
        before = int(client.infer(X=one)["Y"][0, 0])
        opened = descriptors()
        until(lambda: broken.stat().st_size > 4)

        assert len(threads()) == 1
        until(lambda: descriptors() <= opened)
        broken.unlink()
        until(lambda: len(threads()) == 2)


LIBRARY = """
    #include <pthread.h>
    #include <stdlib.h>
    #include <time.h>
    #include "naiad_custom.h"

    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
    static int initialising, made, met;

    int naiad_initialize(const naiad_setup *setup, void **instance) {
      struct timespec until;
      (void)setup, (void)instance;
      clock_gettime(CLOCK_REALTIME, &until);
      until.tv_sec += 1;
      pthread_mutex_lock(&lock);
      met |= ++initialising > 1;
      pthread_cond_broadcast(&changed);
      while (!made && !met && pthread_cond_timedwait(&changed, &lock, &until) == 0) continue;
      --initialising;
      ++made;
      pthread_mutex_unlock(&lock);
      return 0;
    }

    /* Y is whether two instances have been initialised at the same time, and how many there are. */
    int naiad_execute(void *instance, naiad_batch *batch) {
      const naiad_tensor *x = naiad_input(&batch->requests[0], "X");
      float *y = (float *)naiad_output(batch, 0, "Y", "FP32", x->dims, x->ndims, x->byte_size);
      (void)instance;
      if (*(const float *)x->content == 7) abort();
      y[0] = (float)met;
      y[1] = (float)made;
      return 0;
    }

    void naiad_finalize(void *instance) { (void)instance; }
"""


@pytest.mark.skipif(shutil.which("cc") is None, reason="this machine has no compiler 'cc'")
def test_instances_of_a_library_are_initialised_one_after_the_other(tmp_path: Path, served: Serve) -> None:
    folder = tmp_path / "models" / "m"
    (folder / "1").mkdir(parents=True)
    (tmp_path / "library.c").write_text(textwrap.dedent(LIBRARY))
    options = [
        "-D_POSIX_C_SOURCE=200809L",
        "-fPIC",
        "-shared",
        f"-I{include_dir()}",
        "-o",
        folder / "1" / "libcustom.so",
    ]
    subprocess.run(["cc", tmp_path / "library.c", *options], check=True)
    isolation = 'parameters { key: "isolation" value { string_value: "model" } }'
    (folder / "config.pbtxt").write_text(f'backend: "custom" {TWO} {isolation}')
    one, bad = np.ones((1, 2), np.float32), np.full((1, 2), 7, np.float32)

    def seen() -> list[float]:
        try:
            answer: list[float] = client.infer(X=one)["Y"][0].tolist()
        except NaiadError:
            return []
        return answer

    with served(folder) as client:
        assert seen() == [0, 2]
        with pytest.raises(WorkerDiedError):
            client.infer(X=bad)
        until(lambda: seen() in ([0, 2], [1, 2]))
        assert seen() == [0, 2]
