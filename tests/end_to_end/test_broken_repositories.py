"""A repository in which almost everything is broken: each model says why, and the sound one serves."""

import os
import re
import signal
import subprocess
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path

import pytest
from tritonclient.utils import InferenceServerException

from ..fork_server import NAIAD, run_forked
from . import models
from .gates import Gate
from .running import Running

SCORES = models.onnx_scores().SerializeToString()


def python(source: str | bytes, config: str = "") -> Callable[[Path], None]:
    """A model.py of that content."""
    return lambda folder: models.write(folder.parent, folder.name, source, config) and None


def onnx(content: bytes, config: str = "") -> Callable[[Path], None]:
    """A model.onnx of that content."""

    def write(folder: Path) -> None:
        (folder / "1").mkdir(parents=True)
        (folder / "1" / "model.onnx").write_bytes(content)
        if config:
            (folder / "config.pbtxt").write_text(config)

    return write


def sound(then: Callable[[Path], object]) -> Callable[[Path], None]:
    """A sound model, and then that is done to its folder."""

    def write(folder: Path) -> None:
        models.write(folder.parent, folder.name, models.ECHO)
        then(folder)

    return write


def in_place_of_model(make: Callable[[Path], object]) -> Callable[[Path], None]:
    """Something else where the model.py should be."""

    def write(folder: Path) -> None:
        (folder / "1").mkdir(parents=True)
        make(folder / "1" / "model.py")

    return write


def loads(statement: str) -> Callable[[Path], None]:
    """A class that does so when it is loaded."""
    source = f"""
import numpy as np
from naiad_custom import FP32, Array, model

@model
class Loads:
    def load(self):
        {statement}

    def execute(self, x: Array[FP32, -1]) -> Array[FP32, -1]:
        return x
"""
    return python(source.replace("load(self)", "load(self, context)"))


LABELLED = 'output {{ name: "output" label_filename: "{}" }}'

BROKEN: Mapping[str, tuple[Callable[[Path], None], str]] = {
    # model files that are corrupt
    "onnx_cut": (onnx(SCORES[: len(SCORES) // 2]), "cannot load"),
    "onnx_empty": (onnx(b""), "cannot load"),
    "onnx_noise": (onnx(bytes(range(256)) * 64), "cannot load"),
    "onnx_text": (onnx(b"not a model"), "cannot load"),
    "py_syntax": (python("def broken(:\n"), "model.py:1: SyntaxError"),
    "py_nul": (python(b"x = 1\0"), "SyntaxError"),
    "py_latin": (python(b"x = '\xff'"), "SyntaxError"),
    "py_empty": (python(""), "holds no model"),
    "py_import": (python("import no_such_module"), "No module named 'no_such_module'"),
    "py_raises": (python("raise ValueError('at import')"), "model.py:1: ValueError: at import"),
    "py_exits": (python("import sys; sys.exit(3)"), "SystemExit: 3"),
    "py_interrupts": (python("raise KeyboardInterrupt"), "KeyboardInterrupt"),
    "py_endless": (python("f = lambda: f()\nf()"), "RecursionError"),
    "py_folder": (in_place_of_model(Path.mkdir), "model.py"),
    "py_pipe": (in_place_of_model(os.mkfifo), "model.py"),
    "py_dangling": (in_place_of_model(lambda path: path.symlink_to("nowhere")), "model.py"),
    "py_loop": (in_place_of_model(lambda path: path.symlink_to("model.py")), "model.py"),
    # memory runs out
    "memory_at_import": (python("import numpy\nnumpy.ones(2**58)"), "MemoryError"),
    "memory_in_load": (loads("self.weights = np.ones(2**58)"), "Unable to allocate"),
    "memory_of_text": (loads("self.weights = bytearray(2**62)"), "MemoryError"),
    "raises_in_load": (loads("raise OSError(28, 'No space left on device')"), "No space left on device"),
    "exits_in_load": (loads("raise SystemExit(1)"), "SystemExit: 1"),
    "stops_in_load": (loads("raise StopIteration"), "StopIteration"),
    # folders and configurations
    "no_version": (lambda folder: folder.mkdir(), "at least one version"),
    "no_file": (lambda folder: (folder / "1").mkdir(parents=True), "1"),
    "odd_versions": (
        lambda folder: [(folder / each).mkdir(parents=True) for each in ("0", "01", "-1", "x")],
        "such as 1",
    ),
    "other_name": (python(models.ECHO, 'name: "different"'), "config.pbtxt:1:1: name: "),
    "config_noise": (python(models.ECHO, "\x01\x02{{{"), "config.pbtxt:1:1"),
    "config_cut": (python(models.ECHO, 'input [ { name: "x'), "config.pbtxt:1:17"),
    "config_latin": (sound(lambda it: (it / "config.pbtxt").write_bytes(b'name: "\xff"')), "byte 0xff is not UTF-8"),
    "config_folder": (sound(lambda it: (it / "config.pbtxt").mkdir()), "config.pbtxt"),
    "config_pipe": (sound(lambda it: os.mkfifo(it / "config.pbtxt")), "not a regular file"),
    "config_deep": (python(models.ECHO, "parameters " + "{ value " * 10_000), "config.pbtxt:1:"),
    "strange_backend": (python(models.ECHO, 'backend: "abacus"'), "Installed backends: "),
    "no_gpu": (python(models.ECHO, "instance_group { kind: KIND_GPU }"), "GPU"),
    "no_labels": (python(models.ECHO, LABELLED.format("labels.txt")), "labels.txt"),
    "labels_outside": (python(models.ECHO, LABELLED.format("../echo/1/model.py")), "label_filename"),
    "labels_absolute": (python(models.ECHO, LABELLED.format("/etc/passwd")), "label_filename"),
    "file_outside": (python(models.ECHO, 'default_model_filename: "../../echo/1/model.py"'), "default_model_filename"),
    "other_input": (python(models.ECHO, 'input { name: "y" data_type: TYPE_FP32 dims: [1] }'), "'y'"),
    "other_type": (python(models.ECHO, 'input { name: "x" data_type: TYPE_INT8 dims: [-1] }'), "INT8"),
    "onnx_outputs": (onnx(SCORES, 'output { name: "Z" }'), "'Z'"),
}

CHECKED = set(BROKEN) - {"py_interrupts"}  # which would end the check: to a command that is the user's own Ctrl-C
LOAD_WELL_ENOUGH = {name for name in BROKEN if "_in_load" in name or name == "memory_of_text"}
"""Those whose fault only loading shows."""


def ruin(root: Path, names: Iterable[str]) -> Path:
    """A repository of these broken models, a sound one, and things that are no models."""
    models.write(root, "echo", models.ECHO)
    for name in names:
        BROKEN[name][0](root / name)
    (root / "README.md").write_text("not a model")
    (root / ".git").mkdir()
    (root / "dangling").symlink_to("nowhere")
    return root


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    """A server of everything that is broken."""
    folder = tmp_path_factory.mktemp("ruin")
    options = ("--exit-on-error=false", "--model-control-mode=explicit", "--load-model=*")
    server = Running(ruin(folder / "models", BROKEN), folder / "log", *options)
    try:
        assert server.port
        yield server
        server.stop()
    finally:
        server.kill()


@pytest.fixture(scope="module")
def checked(tmp_path_factory: pytest.TempPathFactory) -> subprocess.CompletedProcess[str]:
    """What `naiad check` says to everything that is broken."""
    repository = ruin(tmp_path_factory.mktemp("checked") / "models", CHECKED)
    return run_forked(["check", repository])


@pytest.mark.parametrize("name", BROKEN)
def test_a_broken_model_is_unavailable_with_the_reason(running: Running, name: str) -> None:
    message = BROKEN[name][1]

    (entry,) = running.entries(name)
    refused = running.infer(name, 1)
    ready = running.ask("GET", f"/v2/models/{name}/ready")

    assert (entry["state"], refused.status, ready.status) == ("UNAVAILABLE", 503, 503)
    assert message in entry["reason"]
    assert message in refused.error
    assert "Traceback" not in entry["reason"]
    assert len(entry["reason"]) < 3000


@pytest.mark.parametrize("name", [*BROKEN, "not_there"])
def test_the_error_of_a_load_begins_as_clients_of_triton_expect(running: Running, name: str) -> None:
    with running.client() as client, pytest.raises(InferenceServerException) as refused:
        client.load_model(name)

    assert refused.value.message().startswith(f"failed to load '{name}', ")


def test_check_tells_what_can_be_reported_without_loading(checked: subprocess.CompletedProcess[str]) -> None:
    verdicts = dict(re.findall(r"^(\w+): (ok|\d+ problems?)$", checked.stdout, re.MULTILINE))

    assert (checked.returncode, checked.stderr) == (1, "")
    assert {name for name, verdict in verdicts.items() if verdict == "ok"} == {"echo", *LOAD_WELL_ENOUGH}
    assert set(verdicts) == {*CHECKED, "echo", "dangling"}
    broken = len(verdicts) - 1 - len(LOAD_WELL_ENOUGH)
    assert checked.stdout.splitlines()[-1] == f"{len(verdicts)} models, {broken} with problems"


def test_check_tells_the_same_reasons_as_the_server(checked: subprocess.CompletedProcess[str]) -> None:
    report = re.split(r"^(\w+): \d+ problems?\n", checked.stdout, flags=re.MULTILINE)
    reasons = dict(zip(report[1::2], report[2::2], strict=True))

    missing = {name: reason for name, reason in reasons.items() if name in BROKEN and BROKEN[name][1] not in reason}

    assert missing == {}


def test_a_check_can_be_interrupted_while_a_model_is_imported(tmp_path: Path, gate: Gate) -> None:
    models.write(tmp_path / "models", "endless", gate.function("wait") + "wait()")
    models.write(tmp_path / "models", "next", models.ECHO)

    check = subprocess.Popen([NAIAD, "check", tmp_path / "models"], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    gate.wait_until_entered()
    check.send_signal(signal.SIGINT)
    report = check.communicate(timeout=60)

    assert check.returncode == 130
    assert b"next" not in report[0]
    assert b"Traceback" not in report[1]
